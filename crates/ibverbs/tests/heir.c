/* Releases an RDMA port that the process listens on while a forked child still runs. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns "free" if the UDP port can be bound, or the name of the error. */
static const char *claim(struct sockaddr_in at)
{
    int plain = socket(AF_INET, SOCK_DGRAM, 0);
    const char *outcome = bind(plain, (struct sockaddr *)&at, sizeof at) ? strerrorname_np(errno) : "free";
    close(plain);
    return outcome;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    int line[2], back[2];
    char byte = 0;
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&at) ||
        rdma_listen(id, 1) || pipe(line) || pipe(back))
        return 1;
    at.sin_port = rdma_get_src_port(id);
    printf("while it listens: %s\n", claim(at));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(line[1]);
        _exit(write(back[1], &byte, 1) != 1 || read(line[0], &byte, 1) != 0);
    }
    /* The child runs. */
    if (read(back[0], &byte, 1) != 1)
        return 1;
    close(line[0]);
    rdma_destroy_id(id);
    printf("while its child lives on: %s\n", claim(at));
    close(line[1]);
    int status;
    return waitpid(child, &status, 0) != child || status;
}
