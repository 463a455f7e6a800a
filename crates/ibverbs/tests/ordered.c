// Watches the order in which Writes change memory, over a network that loses packets.
//
//   ordered                     waits for a connection, and watches the memory that the other side writes
//   ordered ADDRESS             connects, writes lines one after the other, and prints what the other side has seen
//
// Exit status: 0 if every line has arrived intact.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A Write brings one line, in one packet.
enum { LINE = 512, LINES = 2000, REGION = LINE * LINES, DEPTH = 64, AHEAD = 512, PATIENCE = 60 };

struct offer {
    uint64_t address;
    uint32_t rkey;
};

static void die(const char *what) {
    perror(what);
    exit(2);
}
#define MUST(call) do { if (call) die(#call); } while (0)

// Returns byte `at` of line `line`, which is never zero.
static uint8_t pattern(uint32_t line, uint32_t at) {
    return ((line + 1) * 2654435761u ^ at * 40503u) >> 11 | 1;
}

static struct rdma_cm_id *end(char *address, int passive) {
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = passive ? RAI_PASSIVE : 0}, *found;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct rdma_cm_id *id;
    MUST(rdma_getaddrinfo(address, "7778", &hints, &found));
    MUST(rdma_create_ep(&id, found, NULL, &init));
    return id;
}

// Returns whether the last byte of a line, which is written last, is there.
static int is_there(const uint8_t *region, uint32_t line) {
    return __atomic_load_n(region + line * LINE + LINE - 1, __ATOMIC_ACQUIRE) != 0;
}

static int serve(void) {
    struct rdma_cm_id *listener = end("0.0.0.0", 1), *id;
    MUST(rdma_listen(listener, 1));
    MUST(rdma_get_request(listener, &id));
    uint8_t *region = calloc(1, REGION);
    struct ibv_mr *mr = ibv_reg_mr(id->pd, region, REGION, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    MUST(rdma_post_recv(id, NULL, region, 0, mr));
    struct offer offer = {(uintptr_t)region, mr->rkey};
    struct rdma_conn_param param = {.private_data = &offer, .private_data_len = sizeof offer, .rnr_retry_count = 7};
    MUST(rdma_accept(id, &param));
    alarm(PATIENCE);
    // Counts the looks at which a line was there while an earlier one was not.
    uint32_t ahead = 0, wrong = 0;
    for (uint32_t front = 0; front < LINES;) {
        while (front < LINES && is_there(region, front))
            front++;
        int is_ahead = 0;
        for (uint32_t line = front + 1; line < LINES && line < front + AHEAD; line++)
            is_ahead |= is_there(region, line) && !is_there(region, front);
        ahead += is_ahead;
    }
    for (uint32_t at = 0; at < REGION; at++)
        wrong += region[at] != pattern(at / LINE, at % LINE);
    uint32_t answer[] = {ahead, wrong};
    struct ibv_mr *says = rdma_reg_msgs(id, answer, sizeof answer);
    struct ibv_wc wc;
    MUST(rdma_post_send(id, NULL, answer, sizeof answer, says, 0));
    // The other side confirms the answer, and may be gone before its acknowledgement has arrived here.
    rdma_get_recv_comp(id, &wc);
    sleep(1);
    return wrong > 0;
}

static int ask(char *address) {
    struct rdma_cm_id *id = end(address, 0);
    static uint32_t answer[2];
    struct ibv_mr *mr = rdma_reg_msgs(id, answer, sizeof answer);
    MUST(rdma_post_recv(id, NULL, answer, sizeof answer, mr));
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    MUST(rdma_connect(id, &param));
    struct offer there;
    memcpy(&there, id->event->param.conn.private_data, sizeof there);
    uint8_t *lines = malloc(REGION);
    struct ibv_mr *from = rdma_reg_msgs(id, lines, REGION);
    for (uint32_t at = 0; at < REGION; at++)
        lines[at] = pattern(at / LINE, at % LINE);
    struct ibv_wc wc;
    for (uint32_t line = 0; line < LINES + DEPTH; line++) {
        if (line >= DEPTH && (rdma_get_send_comp(id, &wc) < 1 || wc.status))
            die("write");
        uint64_t at = (uint64_t)line * LINE;
        if (line < LINES)
            MUST(rdma_post_write(id, NULL, lines + at, LINE, from, 0, there.address + at, there.rkey));
    }
    if (rdma_get_recv_comp(id, &wc) < 1 || wc.status)
        die("answer");
    MUST(rdma_post_send(id, NULL, NULL, 0, NULL, 0));
    if (rdma_get_send_comp(id, &wc) < 1)
        die("last word");
    printf("wrong: %u\nahead: %u\n", answer[1], answer[0]);
    return answer[1] > 0;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    return count > 1 ? ask(words[1]) : serve();
}
