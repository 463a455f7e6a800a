/* Waits for completion channels, asynchronous events and a connection manager's channel by poll, select and epoll: none
   of them is ever writable, and each is readable only while it has an event. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static int edges;

/* Returns the state of a descriptor by poll, select and epoll in letters: r for readable, w for writable, x for others. */
static const char *looks(int fd) {
    static char text[40];
    struct pollfd one = {fd, POLLIN | POLLOUT | POLLPRI, 0};
    poll(&one, 1, 0);
    fd_set reads, writes, others;
    FD_ZERO(&reads);
    FD_SET(fd, &reads);
    writes = others = reads;
    struct timeval none = {0, 0};
    select(fd + 1, &reads, &writes, &others, &none);
    int levels = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLPRI};
    epoll_ctl(levels, EPOLL_CTL_ADD, fd, &event);
    event.events = 0;
    epoll_wait(levels, &event, 1, 0);
    close(levels);
    snprintf(text, sizeof text, "poll %s%s%s select %s%s%s epoll %s%s%s", one.revents & POLLIN ? "r" : "",
             one.revents & POLLOUT ? "w" : "", one.revents & ~(POLLIN | POLLOUT) ? "x" : "",
             FD_ISSET(fd, &reads) ? "r" : "", FD_ISSET(fd, &writes) ? "w" : "", FD_ISSET(fd, &others) ? "x" : "",
             event.events & EPOLLIN ? "r" : "", event.events & EPOLLOUT ? "w" : "",
             event.events & ~(EPOLLIN | EPOLLOUT) ? "x" : "");
    return text;
}

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
    epoll_ctl(edges, EPOLL_CTL_ADD, fd, &event);
}

/* Returns the number of edges of a descriptor within `within` milliseconds. */
static int edge(int fd, int within) {
    struct epoll_event event[8];
    int found = 0, count = epoll_wait(edges, event, 8, within);
    for (int at = 0; at < count; at++) found += event[at].data.fd == fd;
    return found;
}

static void look(const char *what, int fd) {
    int first = edge(fd, 1000), second = edge(fd, 0);
    printf("%s: %d, then %d\n", what, first, second);
}

static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* Causes one completion and one event: a failed queue pair flushes the posted request. */
static void complete(void) {
    struct ibv_recv_wr request = {.wr_id = 1}, *bad;
    struct ibv_wc completion;
    ibv_req_notify_cq(cq, 0);
    if (ibv_post_recv(qp, &request, &bad)) printf("cannot post\n");
    while (!ibv_poll_cq(cq, 1, &completion));
}

int main(int argc, char **argv) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (; *list; list++)
        if (argc < 2 || !strcmp(ibv_get_device_name(*list), argv[1])) break;
    context = ibv_open_device(*list);
    edges = epoll_create1(0);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct rdma_event_channel *manager = rdma_create_event_channel();
    watch(channel->fd), watch(context->async_fd), watch(manager->fd);
    printf("nothing: %s\n", looks(channel->fd));
    printf("nothing: %s\n", looks(context->async_fd));
    printf("nothing: %s\n", looks(manager->fd));

    struct ibv_pd *pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, channel, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {4, 4, 1, 1, 0}};
    qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attributes.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(qp, &attributes, IBV_QP_STATE);

    complete();
    printf("one completion: %s\n", looks(channel->fd));
    look("an edge", channel->fd);
    complete();
    look("another edge", channel->fd);
    struct ibv_cq *of;
    void *own;
    ibv_get_cq_event(channel, &of, &own);
    printf("one of two taken: %s\n", looks(channel->fd));
    ibv_get_cq_event(channel, &of, &own);
    printf("both taken: %s\n", looks(channel->fd));
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    int told = ibv_get_cq_event(channel, &of, &own);
    printf("none, not waiting: %s\n", told && errno == EAGAIN ? "EAGAIN" : "something");
    ibv_ack_cq_events(cq, 2);

    struct rdma_cm_id *id;
    rdma_create_id(manager, &id, NULL, RDMA_PS_TCP);
    struct sockaddr to = {.sa_family = AF_INET};
    memcpy(to.sa_data, "\x1b\x58\x7f\0\0\x01", 6);
    rdma_resolve_addr(id, NULL, &to, 1000);
    printf("an event: %s\n", looks(manager->fd));
    struct rdma_cm_event *event;
    rdma_get_cm_event(manager, &event);
    rdma_ack_cm_event(event);
    printf("taken: %s\n", looks(manager->fd));
    rdma_resolve_addr(id, NULL, &to, 1000);
    rdma_destroy_id(id);
    printf("gone with its identifier: %s\n", looks(manager->fd));

    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    printf("gone with its queue: %s\n", looks(channel->fd));
    return 0;
}
