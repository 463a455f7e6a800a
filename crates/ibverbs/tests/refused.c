/* Requests that a queue pair refuses, and its state afterwards; the queue pair is connected with itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ROOM = 4 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char memory[64];

static struct ibv_qp *make(enum ibv_qp_type type, uint64_t operations)
{
    struct ibv_qp_init_attr_ex wanted = {
        .send_cq = cq, .recv_cq = cq, .qp_type = type,
        .cap = {ROOM, 1, 1, 1, 8},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = operations,
    };
    errno = 0;
    return ibv_create_qp_ex(context, &wanted);
}

static const char *made(enum ibv_qp_type type, uint64_t operations)
{
    struct ibv_qp *qp = make(type, operations);
    return qp ? ibv_destroy_qp(qp) ? "busy" : "made" : strerrorname_np(errno);
}

static void must(int outcome)
{
    if (outcome)
        exit(1);
}

/* Posts `count` Writes at once; returns the outcome. */
static const char *post(struct ibv_qp *qp, int count, struct ibv_mr *mr)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    for (int at = 0; at < count; at++) {
        ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory);
        ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 1);
    }
    int failed = ibv_wr_complete(ex);
    return failed ? strerrorname_np(failed) : "posted";
}

static int completions(int expected)
{
    struct ibv_wc wc;
    int found = 0;
    while (found < expected)
        found += ibv_poll_cq(cq, 1, &wc);
    return found + ibv_poll_cq(cq, 1, &wc);
}

int main(int count, char **words)
{
    int devices;
    struct ibv_device **list = ibv_get_device_list(&devices);
    for (int at = 0; at < devices; at++)
        if (strcmp(ibv_get_device_name(list[at]), words[count - 1]) == 0)
            context = ibv_open_device(list[at]);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    printf("datagrams that write: %s\n", made(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE));
    printf("datagrams: %s\n", made(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM));
    printf("unreliable Reads: %s\n", made(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ));
    printf("unreliable Writes: %s\n", made(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE));

    struct ibv_qp *qp = make(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
        .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
        .ah_attr = {.grh = {.sgid_index = 1, .hop_limit = 1}, .is_global = 1, .port_num = 1},
        .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
    };
    must(ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid));
    must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC));
    attr.path_mtu = IBV_MTU_4096;
    printf("another MTU: %s\n", strerrorname_np(ibv_modify_qp(qp, &attr, IBV_QP_PATH_MTU)));
    printf("more than there is room for: %s\n", post(qp, ROOM + 1, mr));
    printf("as many: %s\n", post(qp, ROOM, mr));
    printf("completed: %d\n", completions(ROOM));

    struct ibv_qp_init_attr init;
    attr.qp_state = IBV_QPS_SQD;
    must(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    must(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
    printf("drained: %s\n", attr.qp_state == IBV_QPS_SQD && !attr.sq_draining ? "yes" : "no");

    struct rlimit none = {0, 0};
    must(setrlimit(RLIMIT_NOFILE, &none));
    uint32_t first = ibv_reg_mr(pd, memory, sizeof memory, 0)->rkey, second = ibv_reg_mr(pd, memory, sizeof memory, 0)->rkey;
    printf("keys without descriptors: %s\n", second == first + 1 ? "guessed" : "nobody guesses them");
    return 0;
}
