// Calls of the C library that Python does not make: `calls ADDRESS`, beside `echo.py server`.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHECK(is_right)                                                                      \
    do {                                                                                     \
        if (!(is_right)) {                                                                   \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_right, strerror(errno));      \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static struct sockaddr_in server;

static int opened(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (struct sockaddr *)&server, sizeof server) == 0);
    return fd;
}

// Sends four datagrams by one call, and takes their echoes by one call each time.
static void many(int fd) {
    char out[4][8], in[4][16];
    struct iovec pieces[4], places[4];
    struct mmsghdr to[4], from[4];
    memset(to, 0, sizeof to);
    for (int i = 0; i < 4; i++) {
        snprintf(out[i], sizeof out[i], "many %d", i);
        pieces[i] = (struct iovec){out[i], strlen(out[i])};
        to[i].msg_hdr.msg_iov = &pieces[i];
        to[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK(sendmmsg(fd, to, 4, 0) == 4);
    for (int i = 0; i < 4; i++)
        CHECK(to[i].msg_len == strlen(out[i]));
    int seen = 0;
    while (seen < 4) {
        struct sockaddr_in names[4];
        memset(from, 0, sizeof from);
        for (int i = 0; i < 4; i++) {
            places[i] = (struct iovec){in[i], sizeof in[i]};
            from[i].msg_hdr.msg_iov = &places[i];
            from[i].msg_hdr.msg_iovlen = 1;
            from[i].msg_hdr.msg_name = &names[i];
            from[i].msg_hdr.msg_namelen = sizeof names[i];
        }
        struct timespec patience = {5, 0};
        int came = recvmmsg(fd, from, 4, MSG_WAITFORONE, &patience);
        CHECK(came > 0);
        for (int i = 0; i < came; i++, seen++) {
            CHECK(from[i].msg_len == 6 && memcmp(in[i], out[seen], 6) == 0);
            CHECK(names[i].sin_addr.s_addr == server.sin_addr.s_addr && names[i].sin_port == server.sin_port);
        }
    }
    struct timespec now = {0, 0};
    CHECK(recvmmsg(fd, from, 4, MSG_DONTWAIT, &now) == -1 && errno == EAGAIN);
}

static int readable(int fd, long ms) {
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    struct pollfd one = {fd, POLLIN, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    int selected = pselect(fd + 1, &set, NULL, NULL, &span, NULL);
    int polled = ppoll(&one, 1, &span, NULL);
    CHECK(selected >= 0 && polled == selected && (FD_ISSET(fd, &set) != 0) == selected && (one.revents != 0) == polled);
    return selected;
}

// Says something and hears it, by calls of pieces.
static void pieces(int fd) {
    char head[3], tail[8];
    struct iovec out[2] = {{"by ", 3}, {"pieces", 6}}, in[2] = {{head, 3}, {tail, 8}};
    CHECK(readable(fd, 30) == 0);
    CHECK(writev(fd, out, 2) == 9);
    CHECK(readable(fd, 5000) == 1);
    CHECK(readv(fd, in, 2) == 9 && memcmp(head, "by ", 3) == 0 && memcmp(tail, "pieces", 6) == 0);
}

int main(int count, char **words) {
    CHECK(count == 2);
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(6000)};
    CHECK(inet_pton(AF_INET, words[1], &server.sin_addr) == 1);
    int fd = opened();
    many(fd);
    pieces(fd);
    // A copy has its original's socket, whatever had the number before, and outlives it.
    int other = opened(), kept = dup2(fd, other);
    CHECK(kept == other);
    int third = dup3(fd, 100, O_CLOEXEC), fourth = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    CHECK(third == 100 && fourth >= 50 && (fcntl(third, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(close(fd) == 0);
    many(kept);
    pieces(third);
    many(fourth);
    CHECK(dup2(kept, kept) == kept && dup3(kept, kept, 0) == -1 && errno == EINVAL);
    pieces(kept);
    CHECK(close_range(50, 200, 0) == 0);
    CHECK(send(third, "x", 1, 0) == -1 && errno == EBADF);
    pieces(kept);
    // A number that is used again is another file's: here, a pipe's.
    int ends[2];
    CHECK(close(kept) == 0 && pipe(ends) == 0);
    CHECK(write(ends[1], "pipe", 4) == 4);
    char word[4];
    CHECK(read(ends[0], word, 4) == 4 && memcmp(word, "pipe", 4) == 0);
    puts("well");
    return 0;
}
