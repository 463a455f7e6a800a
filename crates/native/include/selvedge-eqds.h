/* Native messages of EQDS tunnels (`selvedge eqds up`), for programs in C.
 *
 * Messages of up to 1 MiB between ports of hosts, addressed by the addresses inside. Functions return -1 and set errno
 * on failure: ECONNREFUSED or ENOENT if no daemon is there, ECONNABORTED if it has ended since (close the socket and
 * open another), EADDRINUSE, EMSGSIZE, EHOSTUNREACH. A socket may be used by several threads, and by a child after
 * fork(). Link with -lselvedge-eqds. */
#ifndef SELVEDGE_EQDS_H
#define SELVEDGE_EQDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of a message. */
#define SELVEDGE_EQDS_LONGEST (1u << 20)

struct selvedge_eqds;

/* What has become of a message. */
enum selvedge_eqds_outcome {
    SELVEDGE_EQDS_ARRIVED,      /* all of it is at the destination's host; a refusal may follow */
    SELVEDGE_EQDS_SENT,         /* sent by an unreliable tunnel, which does not tell more */
    SELVEDGE_EQDS_NO_LISTENER,  /* no program there has the port */
    SELVEDGE_EQDS_FULL,         /* the program there has too much unread */
    SELVEDGE_EQDS_UNREACHABLE,  /* the host does not answer */
    SELVEDGE_EQDS_LOST,         /* may not have arrived: a restart, changed settings, a path for shorter packets */
    SELVEDGE_EQDS_UNSUPPORTED,  /* the host knows no native messages */
    SELVEDGE_EQDS_NO_ROUTE,     /* no peer serves the destination */
    SELVEDGE_EQDS_WRONG_SOURCE  /* the source is no address of this host */
};

/* A notice about a message that was sent. */
struct selvedge_eqds_notice {
    uint32_t tag;            /* as given to selvedge_eqds_send() */
    uint32_t outcome;        /* enum selvedge_eqds_outcome */
    uint64_t round_trip_ns;  /* of the message's last packet; 0: unknown */
};

/* The way to a host: queues in bytes, times in nanoseconds (0: not measured). */
struct selvedge_eqds_reach {
    uint64_t waiting, in_flight, credit, pull_queue, busy_ns, rto_ns;
    uint64_t round_trips, latest_ns, least_ns, smoothed_ns;
};

/* Opens a port, 0 for any, at the daemon whose control socket is `control`; NULL: that of the environment's
 * SELVEDGE_EQDS, or /run/selvedge/eqds.sock. Returns NULL on failure. */
struct selvedge_eqds *selvedge_eqds_open(const char *control, uint16_t port);
void selvedge_eqds_close(struct selvedge_eqds *socket);

uint16_t selvedge_eqds_port(const struct selvedge_eqds *socket);
/* Descriptors for poll(): readable while there are messages (or the daemon has gone); while there are notices; when
 * there is room again after EAGAIN. They belong to the socket; only its functions read from them. */
int selvedge_eqds_fd(const struct selvedge_eqds *socket);
int selvedge_eqds_notice_fd(const struct selvedge_eqds *socket);
int selvedge_eqds_room_fd(const struct selvedge_eqds *socket);

/* Flags. */
#define SELVEDGE_EQDS_DONTWAIT 1u  /* EAGAIN instead of waiting */
#define SELVEDGE_EQDS_NOTICE 2u    /* tell of success, too; failure is always told */

/* Sends a message to an address inside and port (struct sockaddr_in or sockaddr_in6). Returns 0. */
int selvedge_eqds_send(struct selvedge_eqds *socket, const void *bytes, size_t length, const struct sockaddr *to,
                       socklen_t to_length, uint32_t tag, unsigned flags);

/* Receives a message and, unless `from` is NULL, its sender. Returns the length of the message; what the buffer had no
 * room for is lost. */
ssize_t selvedge_eqds_recv(struct selvedge_eqds *socket, void *buffer, size_t room, struct sockaddr_storage *from,
                           unsigned flags);

/* Receives a notice. Returns 0. */
int selvedge_eqds_recv_notice(struct selvedge_eqds *socket, struct selvedge_eqds_notice *notice, unsigned flags);

/* Tells about the way to an address inside; its port does not matter. Returns 0. */
int selvedge_eqds_get_reach(struct selvedge_eqds *socket, const struct sockaddr *to, socklen_t to_length,
                            struct selvedge_eqds_reach *reach);

#ifdef __cplusplus
}
#endif
#endif
