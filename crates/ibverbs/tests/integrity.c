// Checks every byte that arrives between two processes, over a network that may do anything to packets.
//
//   integrity                   waits for a connection
//   integrity ADDRESS           connects; writes, reads, adds, sends and sends datagrams; prints what arrived
//
// Exit status: 0 if no error was found.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOT = 1 << 16, SLOTS = 16, REGION = SLOT * SLOTS, ROUNDS = 12, ADDS = 320, SENDS = 192, DATAGRAMS = 1000 };
enum { DATAGRAM = 1000, GRH = 40, RECEIVES = 64, QKEY = 0x5e1f, QUIET = 300 };

struct offer {
    uint64_t address, counter;
    uint32_t rkey, counter_rkey, datagram_qp;
};

static void die(const char *what) {
    perror(what);
    exit(2);
}
#define MUST(call) do { if (call) die(#call); } while (0)

// Returns the byte at offset `at` of message number `message`.
static uint8_t pattern(uint32_t message, uint32_t at) {
    uint32_t word = (message + 1) * 2654435761u ^ at * 40503u;
    return word >> 7 ^ word >> 19;
}
static void fill(uint8_t *bytes, uint32_t message, uint32_t length) {
    for (uint32_t at = 0; at < length; at++)
        bytes[at] = pattern(message, at);
}
static int is_right(const uint8_t *bytes, uint32_t message, uint32_t length) {
    for (uint32_t at = 0; at < length; at++)
        if (bytes[at] != pattern(message, at))
            return 0;
    return 1;
}
static uint32_t length_of(uint32_t message) {
    return message * 977 % 40000 + 1;
}

static struct rdma_cm_id *end(char *address, int passive) {
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = passive ? RAI_PASSIVE : 0}, *found;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 64, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct rdma_cm_id *id;
    MUST(rdma_getaddrinfo(address, "7777", &hints, &found));
    MUST(rdma_create_ep(&id, found, NULL, &init));
    return id;
}

static struct ibv_qp *datagram_qp(struct rdma_cm_id *id, struct ibv_cq **cq) {
    *cq = ibv_create_cq(id->verbs, DATAGRAMS + 64, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_UD,
        .send_cq = *cq,
        .recv_cq = *cq,
        .cap = {.max_send_wr = 64, .max_recv_wr = 2 * DATAGRAMS, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *qp = ibv_create_qp(id->pd, &init);
    if (!qp)
        die("datagram queue pair");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return qp;
}

static void done(struct rdma_cm_id *id, int sends) {
    struct ibv_wc wc;
    while (sends--) {
        if (rdma_get_send_comp(id, &wc) < 1)
            die("completion");
        if (wc.status) {
            fprintf(stderr, "request: %s\n", ibv_wc_status_str(wc.status));
            exit(1);
        }
    }
}

// The passive side: checks Sends and datagrams as they come.
static int serve(void) {
    struct rdma_cm_id *listener = end("0.0.0.0", 1), *id;
    MUST(rdma_listen(listener, 1));
    MUST(rdma_get_request(listener, &id));
    uint8_t *region = calloc(1, REGION), *inbox = malloc(RECEIVES * SLOT);
    uint8_t *datagrams = malloc(2 * DATAGRAMS * (GRH + DATAGRAM));
    uint64_t *counter = calloc(1, 8);
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_mr *mr = ibv_reg_mr(id->pd, region, REGION, access), *in = rdma_reg_msgs(id, inbox, RECEIVES * SLOT);
    struct ibv_mr *count = ibv_reg_mr(id->pd, counter, 8, access);
    struct ibv_mr *grams = rdma_reg_msgs(id, datagrams, 2 * DATAGRAMS * (GRH + DATAGRAM));
    struct ibv_cq *cq;
    struct ibv_qp *ud = datagram_qp(id, &cq);
    for (uint64_t n = 0; n < 2 * DATAGRAMS; n++) {
        struct ibv_sge sge = {(uintptr_t)(datagrams + n * (GRH + DATAGRAM)), GRH + DATAGRAM, grams->lkey};
        struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;
        MUST(ibv_post_recv(ud, &wr, &bad));
    }
    for (uint64_t n = 0; n < RECEIVES; n++)
        MUST(rdma_post_recv(id, (void *)n, inbox + n * SLOT, SLOT, in));
    struct offer offer = {(uintptr_t)region, (uintptr_t)counter, mr->rkey, count->rkey, ud->qp_num};
    struct rdma_conn_param param = {
        .private_data = &offer, .private_data_len = sizeof offer, .responder_resources = 16, .initiator_depth = 16,
        .rnr_retry_count = 7,
    };
    MUST(rdma_accept(id, &param));
    // The client chooses the retry count of both sides; `retry_count` has no effect here.
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    MUST(ibv_query_qp(id->qp, &attr, IBV_QP_RETRY_CNT, &init));
    if (attr.retry_cnt != 7) {
        fprintf(stderr, "accepted: %u retries\n", attr.retry_cnt);
        exit(1);
    }
    uint32_t damaged = 0;
    struct ibv_wc wc;
    for (uint32_t message = 0; message < SENDS; message++) {
        if (rdma_get_recv_comp(id, &wc) < 1 || wc.status)
            die("receive");
        uint8_t *at = inbox + wc.wr_id * SLOT;
        damaged += wc.byte_len != length_of(message) || !is_right(at, message, wc.byte_len);
        MUST(rdma_post_recv(id, (void *)wc.wr_id, at, SLOT, in));
    }
    // The next message says that all datagrams have been sent; the last ones may be late.
    if (rdma_get_recv_comp(id, &wc) < 1 || wc.status)
        die("end of datagrams");
    uint32_t arrived = 0, wrong = 0;
    // Empty polls are counted instead of time: a process that waits for a processor would take that for silence.
    for (int quiet = 0; quiet < QUIET;) {
        if (ibv_poll_cq(cq, 1, &wc) < 1) {
            quiet++;
            usleep(1000);
            continue;
        }
        quiet = 0;
        uint8_t *payload = datagrams + wc.wr_id * (GRH + DATAGRAM) + GRH;
        uint32_t number = ntohl(wc.imm_data);
        arrived++;
        wrong += wc.status || wc.byte_len != GRH + DATAGRAM || number >= DATAGRAMS ||
                 !is_right(payload, number, DATAGRAM);
    }
    uint32_t answer[] = {damaged, arrived, wrong};
    struct ibv_mr *says = rdma_reg_msgs(id, answer, sizeof answer);
    MUST(rdma_post_send(id, NULL, answer, sizeof answer, says, 0));
    // The client confirms the answer, and may be gone before its acknowledgement has arrived here.
    struct ibv_wc sent;
    if (rdma_get_recv_comp(id, &wc) < 1 || wc.status)
        fprintf(stderr, "answer: %s\n", rdma_get_send_comp(id, &sent) < 1 ? "?" : ibv_wc_status_str(sent.status));
    // Our acknowledgement of the confirmation may be lost, too: stay for as long as it may be retransmitted.
    sleep(1);
    return damaged || wrong;
}

static int writes_and_reads(struct rdma_cm_id *id, const struct offer *there) {
    uint8_t *out = malloc(REGION), *back = calloc(1, REGION), *mirror = calloc(1, REGION);
    struct ibv_mr *from = rdma_reg_msgs(id, out, REGION), *to = rdma_reg_msgs(id, back, REGION);
    for (uint32_t message = 0; message < ROUNDS * SLOTS; message += SLOTS) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            uint32_t length = length_of(message + slot), at = slot * SLOT + message % 7;
            fill(out + at, message + slot, length);
            memcpy(mirror + at, out + at, length);
            MUST(rdma_post_write(id, NULL, out + at, length, from, 0, there->address + at, there->rkey));
        }
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            uint32_t at = slot * SLOT;
            MUST(rdma_post_read(id, NULL, back + at, SLOT, to, 0, there->address + at, there->rkey));
        }
        done(id, 2 * SLOTS);
        if (memcmp(back, mirror, REGION))
            return 0;
    }
    return 1;
}

static int adds(struct rdma_cm_id *id, const struct offer *there) {
    static uint64_t before[ADDS];
    struct ibv_mr *mr = rdma_reg_msgs(id, before, sizeof before);
    for (uint32_t n = 0; n < ADDS; n++) {
        struct ibv_sge sge = {(uintptr_t)&before[n], 8, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD}, *bad;
        wr.wr.atomic.remote_addr = there->counter;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.rkey = there->counter_rkey;
        MUST(ibv_post_send(id->qp, &wr, &bad));
        if (n % 16 == 15)
            done(id, 16);
    }
    for (uint64_t n = 0; n < ADDS; n++)
        if (before[n] != n)
            return 0;
    return 1;
}

static void sends(struct rdma_cm_id *id) {
    uint8_t *out = malloc(REGION);
    struct ibv_mr *mr = rdma_reg_msgs(id, out, REGION);
    for (uint32_t message = 0; message < SENDS; message++) {
        uint8_t *at = out + message % SLOTS * SLOT;
        fill(at, message, length_of(message));
        MUST(rdma_post_send(id, NULL, at, length_of(message), mr, 0));
        if (message % SLOTS == SLOTS - 1)
            done(id, SLOTS);
    }
}

static void datagrams(struct rdma_cm_id *id, const struct offer *there) {
    struct ibv_cq *cq;
    struct ibv_qp *ud = datagram_qp(id, &cq);
    struct ibv_ah_attr route = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
    route.grh.dgid = id->route.addr.addr.ibaddr.dgid;
    union ibv_gid gid;
    while (!ibv_query_gid(id->verbs, 1, route.grh.sgid_index, &gid) &&
           memcmp(&gid, &id->route.addr.addr.ibaddr.sgid, sizeof gid))
        route.grh.sgid_index++;
    struct ibv_ah *ah = ibv_create_ah(id->pd, &route);
    if (!ah)
        die("address handle");
    uint8_t out[DATAGRAM];
    struct ibv_mr *mr = rdma_reg_msgs(id, out, sizeof out);
    for (uint32_t number = 0; number < DATAGRAMS; number++) {
        fill(out, number, sizeof out);
        struct ibv_sge sge = {(uintptr_t)out, sizeof out, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM}, *bad;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.imm_data = htonl(number);
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = there->datagram_qp;
        wr.wr.ud.remote_qkey = QKEY;
        MUST(ibv_post_send(ud, &wr, &bad));
        struct ibv_wc wc;
        while (ibv_poll_cq(cq, 1, &wc) < 1)
            ;
    }
}

static int ask(char *address) {
    struct rdma_cm_id *id = end(address, 0);
    static uint32_t answer[3];
    struct ibv_mr *mr = rdma_reg_msgs(id, answer, sizeof answer);
    MUST(rdma_post_recv(id, NULL, answer, sizeof answer, mr));
    struct rdma_conn_param param = {
        .responder_resources = 16, .initiator_depth = 16, .retry_count = 7, .rnr_retry_count = 7};
    MUST(rdma_connect(id, &param));
    struct offer there;
    memcpy(&there, id->event->param.conn.private_data, sizeof there);
    int is_same = writes_and_reads(id, &there);
    printf("writes and reads: %s\n", is_same ? "same" : "DIFFERENT");
    int is_once = adds(id, &there);
    printf("additions: %s\n", is_once ? "each once" : "NOT each once");
    sends(id);
    datagrams(id, &there);
    struct ibv_wc wc;
    MUST(rdma_post_send(id, NULL, NULL, 0, NULL, 0));
    done(id, 1);
    if (rdma_get_recv_comp(id, &wc) < 1 || wc.status)
        die("answer");
    // The status of this last Send does not matter: the other side may leave before its acknowledgement arrives.
    MUST(rdma_post_send(id, NULL, NULL, 0, NULL, 0));
    if (rdma_get_send_comp(id, &wc) < 1)
        die("last word");
    printf("sends: %u wrong\ndatagrams: %u wrong\narrived: %u\n", answer[0], answer[2], answer[1]);
    return !is_same || !is_once || answer[0] || answer[2];
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    return count > 1 ? ask(words[1]) : serve();
}
