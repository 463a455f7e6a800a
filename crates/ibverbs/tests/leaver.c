/* A process connects and ends without disconnecting. Prints the event that its peer gets, although the peer has no
   descriptors left. */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                       .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
static struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

static void check(int bad, const char *what)
{
    if (bad) {
        perror(what);
        _exit(1);
    }
}

/* Returns the next event on a channel; gives up after ten seconds. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    if (poll(&ready, 1, 10000) != 1) {
        printf("nothing\n");
        exit(0);
    }
    check(rdma_get_cm_event(channel, &event), "event");
    return event;
}

static void leave(struct sockaddr_in to)
{
    struct rdma_cm_id *id;
    check(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "identifier");
    check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) || rdma_resolve_route(id, 1000), "way");
    check(rdma_create_qp(id, NULL, &init) || rdma_connect(id, &param), "connection");
    exit(0);
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int line[2];
    check(pipe(line), "pipe");
    if (fork() == 0) {
        check(read(line[0], &at.sin_port, sizeof at.sin_port) != sizeof at.sin_port, "port");
        leave(at);
    }
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id, *other;
    /* One identifier opens the device, the other listens on all. */
    check(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), "identifier");
    check(rdma_bind_addr(other, (struct sockaddr *)&at), "bind");
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "identifier");
    at.sin_addr.s_addr = htonl(INADDR_ANY);
    check(rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, 1), "listen");
    at.sin_port = rdma_get_src_port(id);
    check(write(line[1], &at.sin_port, sizeof at.sin_port) != sizeof at.sin_port, "port");
    struct rlimit all, none;
    check(getrlimit(RLIMIT_NOFILE, &all), "limit");
    /* The limit also bounds the number of descriptors that can be polled: 3 is enough for them. */
    none = all;
    none.rlim_cur = 3;
    for (int n = 0; n < 3; n++) {
        setrlimit(RLIMIT_NOFILE, &none);
        struct rdma_cm_event *event = next(channel);
        setrlimit(RLIMIT_NOFILE, &all);
        printf("%s%s\n", rdma_event_str(event->event), event->id->verbs ? "" : " without a device");
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
            check(rdma_create_qp(event->id, NULL, &init) || rdma_accept(event->id, &param), "accept");
        rdma_ack_cm_event(event);
    }
    return 0;
}
