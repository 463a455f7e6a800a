/* RDMA ports of identifiers: a port in use is refused to others, like by Linux's connection manager. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rdma_event_channel *channel;

static struct rdma_cm_id *made(enum rdma_port_space space) {
    struct rdma_cm_id *id;
    if (rdma_create_id(channel, &id, NULL, space)) exit(1);
    return id;
}

static struct sockaddr *at(const char *address, int port) {
    static struct sockaddr_in both[4];
    static int next;
    struct sockaddr_in *to = &both[next++ % 4];
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &to->sin_addr);
    return (struct sockaddr *)to;
}

static const char *name(int outcome) {
    return !outcome ? "well" : errno == EADDRINUSE ? "EADDRINUSE" : strerror(errno);
}

static int resolves(struct rdma_cm_id *id, const char *from, int port) {
    return rdma_resolve_addr(id, at(from, port), at("127.0.0.1", 7000), 1000);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    channel = rdma_create_event_channel();
    struct rdma_cm_id *first = made(RDMA_PS_TCP), *second = made(RDMA_PS_TCP);
    printf("a source port: %s\n", name(resolves(first, "127.0.0.1", 4421)));
    printf("again: %s\n", name(resolves(second, "127.0.0.1", 4421)));
    printf("to listen on it: %s\n", name(rdma_bind_addr(second, at("127.0.0.1", 4421))));
    printf("to listen on all addresses: %s\n", name(rdma_bind_addr(second, at("0.0.0.0", 4421))));
    printf("for datagrams: %s\n", name(rdma_bind_addr(made(RDMA_PS_UDP), at("127.0.0.1", 4421))));
    if (!fork()) {
        channel = rdma_create_event_channel();
        printf("in another process: %s\n", name(resolves(made(RDMA_PS_TCP), "127.0.0.1", 4421)));
        _exit(0);
    }
    wait(NULL);
    rdma_destroy_id(first);
    printf("given back, for datagrams it is held: ");
    first = made(RDMA_PS_TCP);
    printf("%s\n", name(resolves(first, "127.0.0.1", 4421)));

    struct rdma_cm_id *shares[3];
    int yes = 1;
    for (int n = 0; n < 3; n++) {
        shares[n] = made(RDMA_PS_TCP);
        if (n < 2) rdma_set_option(shares[n], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof yes);
        printf("shared %d: %s\n", n, name(rdma_bind_addr(shares[n], at("127.0.0.1", 4422))));
    }
    printf("listens, but shares: %s\n", name(rdma_listen(shares[0], 1)));
    rdma_destroy_id(shares[1]);
    printf("listens alone: %s\n", name(rdma_listen(shares[0], 1)));

    enum { MANY = 400 };
    static char taken[65536];
    int twice = 0;
    for (int n = 0; n < MANY; n++) {
        struct rdma_cm_id *id = made(RDMA_PS_TCP);
        if (rdma_resolve_addr(id, NULL, at("127.0.0.1", 7000), 1000)) return 1;
        twice += taken[ntohs(rdma_get_src_port(id))]++;
    }
    printf("any port: %d given twice\n", twice);
    return 0;
}
