/* A tunnel that does nothing but forward: packets of a TUN device with segmentation offload, cut into parts that fit the
 * MTU, in UDP datagrams that the kernel cuts and joins (UDP_SEGMENT, UDP_GRO). No credit, acknowledgements, encryption or
 * repair: what a tunnel of user space costs at least, for comparison.
 *
 * usage: plain-forwarder DEVICE OWN-ADDRESS PEER-ADDRESS MTU */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

enum { PORT = 49017, LONGEST = 65536 + 64, MOST = 64000 };

struct words {
	uint32_t message, offset, length;
};

static void check(int status, const char *what)
{
	if (status < 0) {
		perror(what);
		exit(1);
	}
}

static int open_tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	int header = 10, file = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	check(file, "/dev/net/tun");
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	check(ioctl(file, TUNSETIFF, &request), "TUNSETIFF");
	check(ioctl(file, TUNSETVNETHDRSZ, &header), "TUNSETVNETHDRSZ");
	check(ioctl(file, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN), "TUNSETOFFLOAD");
	return file;
}

static int open_udp(const char *own, const char *peer)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_port = htons(PORT) }, to = from;
	int on = 1, room = 16 << 20, file = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	check(file, "socket");
	inet_pton(AF_INET, own, &from.sin_addr);
	inet_pton(AF_INET, peer, &to.sin_addr);
	check(bind(file, (struct sockaddr *)&from, sizeof from), "bind");
	check(connect(file, (struct sockaddr *)&to, sizeof to), "connect");
	check(setsockopt(file, IPPROTO_UDP, UDP_GRO, &on, sizeof on), "UDP_GRO");
	setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	return file;
}

static void send_parts(int udp, const uint8_t *packet, size_t length, size_t part)
{
	static uint8_t buffer[LONGEST];
	static uint32_t message;
	size_t used = 0, offset = 0, segment = part + sizeof(struct words);
	char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };

	message++;
	while (offset < length) {
		size_t bytes = length - offset < part ? length - offset : part;
		struct words words = { message, offset, length };

		memcpy(buffer + used, &words, sizeof words);
		memcpy(buffer + used + sizeof words, packet + offset, bytes);
		used += sizeof words + bytes;
		offset += bytes;
		if (offset == length || used + segment > MOST) {
			struct iovec data = { buffer, used };
			struct msghdr header = { .msg_iov = &data, .msg_iovlen = 1 };

			if (used > segment) {
				struct cmsghdr *c = (struct cmsghdr *)control;

				header.msg_control = control;
				header.msg_controllen = sizeof control;
				c->cmsg_level = IPPROTO_UDP;
				c->cmsg_type = UDP_SEGMENT;
				c->cmsg_len = CMSG_LEN(sizeof(uint16_t));
				*(uint16_t *)CMSG_DATA(c) = segment;
			}
			while (sendmsg(udp, &header, 0) < 0 && errno == EAGAIN) {
				struct pollfd wait = { udp, POLLOUT, 0 };

				poll(&wait, 1, -1);
			}
			used = 0;
		}
	}
}

static void take_part(int tun, const uint8_t *part, size_t length)
{
	static uint8_t packet[LONGEST];
	static struct words state;
	struct words words;

	if (length < sizeof words)
		return;
	memcpy(&words, part, sizeof words);
	length -= sizeof words;
	if (words.offset == 0)
		state = words;
	else if (words.message != state.message || words.offset != state.offset)
		return;
	if (words.offset + length > LONGEST)
		return;
	memcpy(packet + words.offset, part + sizeof words, length);
	state.offset = words.offset + length;
	if (state.offset == words.length && write(tun, packet, words.length) < 0 && errno != EAGAIN && errno != EIO)
		perror("write");
}

static int receive(int udp, int tun)
{
	static uint8_t buffer[LONGEST];
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = { buffer, sizeof buffer };
	struct msghdr header = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t bytes = recvmsg(udp, &header, 0);
	struct cmsghdr *c;
	size_t segment = bytes;

	if (bytes <= 0)
		return 0;
	for (c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			segment = *(int *)CMSG_DATA(c);
	for (ssize_t at = 0; at < bytes; at += segment)
		take_part(tun, buffer + at, (size_t)(bytes - at) < segment ? (size_t)(bytes - at) : segment);
	return 1;
}

int main(int count, char **words)
{
	static uint8_t packet[LONGEST];
	int tun, udp, part;

	if (count != 5) {
		fprintf(stderr, "usage: %s DEVICE OWN-ADDRESS PEER-ADDRESS MTU\n", words[0]);
		return 2;
	}
	tun = open_tun(words[1]);
	udp = open_udp(words[2], words[3]);
	part = atoi(words[4]) - 28 - (int)sizeof(struct words);
	for (;;) {
		struct pollfd files[2] = { { tun, POLLIN, 0 }, { udp, POLLIN, 0 } };
		ssize_t bytes;

		poll(files, 2, -1);
		for (int turn = 0; turn < 16 && receive(udp, tun); turn++)
			;
		for (int turn = 0; turn < 16 && (bytes = read(tun, packet, sizeof packet)) > 0; turn++)
			send_parts(udp, packet, bytes, part);
	}
}
