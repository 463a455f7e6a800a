/* Moves identifiers to another event channel, together with their pending events. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int outcome)
{
    if (outcome)
        exit(1);
}

/* Returns the name of the next event of a channel, if one comes within `patience_ms`. */
static const char *next(struct rdma_event_channel *channel, int patience_ms)
{
    struct pollfd waits = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    if (poll(&waits, 1, patience_ms) != 1)
        return "nothing";
    must(rdma_get_cm_event(channel, &event));
    const char *name = rdma_event_str(event->event);
    struct rdma_cm_id *new = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
    rdma_ack_cm_event(event);
    if (new) {
        rdma_reject(new, NULL, 0);
        rdma_destroy_id(new);
    }
    return name;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *old = rdma_create_event_channel(), *new = rdma_create_event_channel();
    struct rdma_cm_id *listener, *client;
    must(rdma_create_id(old, &listener, NULL, RDMA_PS_TCP) || rdma_bind_addr(listener, (struct sockaddr *)&at));
    printf("bound again: %s\n", rdma_bind_addr(listener, (struct sockaddr *)&at) ? strerrorname_np(errno) : "bound");
    must(rdma_listen(listener, 1));
    at.sin_port = rdma_get_src_port(listener);

    must(rdma_create_id(old, &client, NULL, RDMA_PS_TCP));
    must(rdma_resolve_addr(client, NULL, (struct sockaddr *)&at, 1000));
    must(rdma_migrate_id(client, new));
    printf("left behind: %s\n", next(old, 0));
    printf("came along: %s\n", next(new, 0));
    must(rdma_resolve_route(client, 1000));
    printf("since then: %s\n", next(new, 0));

    must(rdma_migrate_id(listener, new));
    struct rdma_conn_param parameters = {.qp_num = 77};
    must(rdma_connect(client, &parameters));
    printf("the listener's: %s\n", next(new, 5000));
    printf("the client's: %s\n", next(new, 5000));
    printf("left behind: %s\n", next(old, 0));

    /* A client requests a connection, and the listener is destroyed before it has taken the event. */
    struct pollfd waits = {.fd = new->fd, .events = POLLIN};
    must(rdma_destroy_id(client) || rdma_create_id(old, &client, NULL, RDMA_PS_TCP));
    must(rdma_resolve_addr(client, NULL, (struct sockaddr *)&at, 1000) || next(old, 0)[0] != 'R');
    must(rdma_connect(client, &parameters) || poll(&waits, 1, 5000) != 1);
    must(rdma_destroy_id(listener));
    printf("who asked nobody: %s\n", next(old, 1000));
    return 0;
}
