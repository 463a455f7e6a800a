/* An echo server and its client over native EQDS messages.
 *
 *   cc -Wall -Wextra -o echo echo.c -lselvedge-eqds
 *   ./echo server 7000                on one host
 *   ./echo client 10.80.2.1 7000      on another; exit status 0 if the answer is right
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <selvedge-eqds.h>

static char buffer[SELVEDGE_EQDS_LONGEST];

static int fail(const char *what)
{
    fprintf(stderr, "echo: %s: %s\n", what, strerror(errno));
    return 1;
}

static int serve(uint16_t port)
{
    struct selvedge_eqds *socket = selvedge_eqds_open(NULL, port);
    if (socket == NULL)
        return fail("open");
    printf("ready on port %u\n", selvedge_eqds_port(socket));
    fflush(stdout);
    for (;;) {
        struct sockaddr_storage from;
        ssize_t length = selvedge_eqds_recv(socket, buffer, sizeof buffer, &from, 0);
        if (length < 0)
            return fail("receive");
        if (selvedge_eqds_send(socket, buffer, (size_t)length, (struct sockaddr *)&from, sizeof from, 0, 0) < 0)
            return fail("send");
    }
}

static int ask(const char *address, uint16_t port)
{
    static const char text[] = "hello, hello";
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct selvedge_eqds_notice notice;
    struct selvedge_eqds_reach reach;
    struct selvedge_eqds *socket = selvedge_eqds_open(NULL, 0);

    if (inet_pton(AF_INET, address, &to.sin_addr) != 1) {
        fprintf(stderr, "echo: %s is no IPv4 address\n", address);
        return 2;
    }
    if (socket == NULL)
        return fail("open");
    if (selvedge_eqds_send(socket, text, sizeof text, (struct sockaddr *)&to, sizeof to, 7, SELVEDGE_EQDS_NOTICE) < 0)
        return fail("send");
    if (selvedge_eqds_recv_notice(socket, &notice, 0) < 0)
        return fail("notice");
    /* The answer comes, or a notice that nobody is there. */
    while (notice.outcome == SELVEDGE_EQDS_ARRIVED) {
        struct pollfd fds[2] = { { .fd = selvedge_eqds_fd(socket), .events = POLLIN },
                                 { .fd = selvedge_eqds_notice_fd(socket), .events = POLLIN } };
        if (poll(fds, 2, 5000) <= 0) {
            fprintf(stderr, "echo: no answer\n");
            return 1;
        }
        if (fds[0].revents)
            break;
        if (selvedge_eqds_recv_notice(socket, &notice, SELVEDGE_EQDS_DONTWAIT) < 0 && errno != EAGAIN)
            return fail("notice");
    }
    if (notice.tag != 7 || notice.outcome != SELVEDGE_EQDS_ARRIVED) {
        fprintf(stderr, "echo: the message was not taken: outcome %u\n", notice.outcome);
        return 1;
    }
    ssize_t length = selvedge_eqds_recv(socket, buffer, sizeof buffer, NULL, 0);
    if (length < 0)
        return fail("receive");
    if (selvedge_eqds_get_reach(socket, (struct sockaddr *)&to, sizeof to, &reach) < 0)
        return fail("reach");
    printf("%s, round trip %llu us\n", buffer, (unsigned long long)reach.smoothed_ns / 1000);
    selvedge_eqds_close(socket);
    return length == (ssize_t)sizeof text && memcmp(buffer, text, sizeof text) == 0 ? 0 : 1;
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "server") == 0)
        return serve((uint16_t)atoi(words[2]));
    if (count == 4 && strcmp(words[1], "client") == 0)
        return ask(words[2], (uint16_t)atoi(words[3]));
    fprintf(stderr, "usage: echo server PORT | echo client ADDRESS PORT\n");
    return 2;
}
