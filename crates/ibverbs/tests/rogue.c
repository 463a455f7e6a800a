/* A peer of sockets over RDMA that violates their protocol. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int outcome)
{
    if (outcome) {
        perror("rogue");
        exit(1);
    }
}

struct place {
    uint64_t address;
    uint32_t key, length;
} __attribute__((packed));

/* Private data; all numbers are in network byte order. */
struct hello {
    uint8_t version, flags;
    uint16_t credits;
    uint32_t maps;
    struct place list, buffer;
} __attribute__((packed));

enum { DATA = 0, CREDITS = 4, CONTROL = 7 };

static const char *address, *port;
/* The peers' private data (places of list and buffer), of the previous connection and of this one. */
static struct hello before, theirs;
static char memory[4096];
static struct ibv_mr *region;

static struct rdma_cm_id *connected(const struct hello *hello)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr wanted = {
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .sq_sig_all = 1,
    };
    struct rdma_cm_id *id;
    must(rdma_getaddrinfo(address, port, &hints, &found));
    must(rdma_create_ep(&id, found, NULL, &wanted));
    rdma_freeaddrinfo(found);
    region = rdma_reg_write(id, memory, sizeof memory);
    must(!region);
    for (int at = 0; at < 16; at++)
        must(rdma_post_recvv(id, NULL, NULL, 0));
    struct hello own = *hello;
    own.list.address = own.buffer.address = htobe64((uintptr_t)memory);
    own.list.key = own.buffer.key = htobe32(region->rkey);
    struct rdma_conn_param parameters = {
        .private_data = &own, .private_data_len = own.version ? sizeof own : 0, .retry_count = 7, .rnr_retry_count = 7};
    if (rdma_connect(id, &parameters)) {
        rdma_destroy_ep(id);
        return NULL;
    }
    before = theirs;
    memcpy(&theirs, id->event->param.conn.private_data, sizeof theirs);
    return id;
}

static enum ibv_wc_status post(struct rdma_cm_id *id, int opcode, struct place to, uint64_t offset, uint32_t length,
                               uint32_t immediate)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory + 1024, .length = length, .lkey = region->lkey};
    struct ibv_send_wr request = {
        .sg_list = &piece, .num_sge = length ? 1 : 0, .opcode = opcode, .imm_data = htobe32(immediate)}, *bad;
    request.wr.rdma.remote_addr = be64toh(to.address) + offset;
    request.wr.rdma.rkey = be32toh(to.key);
    must(ibv_post_send(id->qp, &request, &bad));
    struct ibv_wc done;
    must(rdma_get_send_comp(id, &done) != 1);
    return done.status;
}

static enum ibv_wc_status message(struct rdma_cm_id *id, struct place to, uint32_t length, uint32_t kind, uint32_t number)
{
    return post(id, IBV_WR_RDMA_WRITE_WITH_IMM, to, 0, length, kind << 29 | number);
}

/* Waits until the other side ends the connection: requests posted then are flushed. */
static const char *ended(struct rdma_cm_id *id)
{
    struct rdma_cm_event *event;
    must(rdma_get_cm_event(id->channel, &event));
    const char *told = event->event == RDMA_CM_EVENT_DISCONNECTED ? "flushed" : rdma_event_str(event->event);
    rdma_ack_cm_event(event);
    return told;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    address = words[1];
    port = words[2];
    struct hello fine = {.version = 1, .credits = htobe16(16)};
    fine.list.length = htobe32(2);
    fine.buffer.length = htobe32(1024);
    struct hello none = {.version = 0}, unlisted = fine;
    unlisted.list.length = 0;
    printf("no private data: %s\n", connected(&none) ? "granted" : "refused");
    printf("a list without entries: %s\n", connected(&unlisted) ? "granted" : "refused");

    struct rdma_cm_id *id = connected(&fine);
    message(id, theirs.buffer, 0, DATA, 0x1fffffff);
    printf("more bytes than there is room for: %s\n", ended(id));
    rdma_destroy_ep(id);

    id = connected(&fine);
    message(id, theirs.buffer, 50, DATA, 100);
    printf("more bytes than were written: %s\n", ended(id));
    rdma_destroy_ep(id);

    id = connected(&fine);
    for (int at = 0; at < 3; at++)
        message(id, theirs.list, 16, CREDITS, 0);
    printf("a third buffer: %s\n", ended(id));
    rdma_destroy_ep(id);

    id = connected(&fine);
    post(id, IBV_WR_SEND, theirs.buffer, 0, 0, 0);
    printf("a message without an immediate: %s\n", ended(id));
    rdma_destroy_ep(id);

    id = connected(&fine);
    uint32_t end = 2 * be32toh(theirs.buffer.length);
    printf("a Write beyond the buffer: %s\n",
           ibv_wc_status_str(post(id, IBV_WR_RDMA_WRITE, theirs.buffer, end - 10, 20, 0)));
    rdma_destroy_ep(id);

    struct rdma_cm_id *other = connected(&fine);
    id = connected(&fine);
    printf("a Write into the buffer of another: %s\n",
           ibv_wc_status_str(post(id, IBV_WR_RDMA_WRITE, before.buffer, 0, 20, 0)));
    rdma_destroy_ep(other);
    rdma_destroy_ep(id);

    id = connected(&fine);
    message(id, theirs.buffer, 0, 1, 5);
    message(id, theirs.buffer, 0, CONTROL, 9);
    memcpy(memory + 1024, "fine", 4);
    message(id, theirs.buffer, 4, DATA, 4);
    printf("messages of a later version: %s\n", ibv_wc_status_str(message(id, theirs.buffer, 0, CONTROL, 0)));
    rdma_destroy_ep(id);
    return 0;
}
