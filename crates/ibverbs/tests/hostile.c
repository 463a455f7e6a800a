/* Faults of programs, with two queue pairs of one process: memory that is unmapped but still registered, guessed keys,
   writes beyond a region, a fork. Prints the outcome of each in a line. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 8192 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qps[2];
static union ibv_gid gid;

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    check(list != NULL, "list");
    for (struct ibv_device **at = list; *at; at++)
        if (!strcmp(ibv_get_device_name(*at), name))
            context = ibv_open_device(*at);
    check(context != NULL, "open");
    check(!ibv_query_gid(context, 1, 1, &gid), "gid");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 64, NULL, NULL, 0);
    check(pd && cq, "resources");
}

static void connect_pair(void)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1}};
    for (int at = 0; at < 2; at++)
        check((qps[at] = ibv_create_qp(pd, &init)) != NULL, "queue pair");
    for (int at = 0; at < 2; at++) {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
                                   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
        check(!ibv_modify_qp(qps[at], &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), "init");
        struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qps[!at]->qp_num,
                                  .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                                  .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1, .hop_limit = 1}}};
        check(!ibv_modify_qp(qps[at], &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "ready to receive");
        struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 2, .rnr_retry = 2, .max_rd_atomic = 1};
        check(!ibv_modify_qp(qps[at], &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                                IBV_QP_MAX_QP_RD_ATOMIC), "ready to send");
    }
}

static const char *request(enum ibv_wr_opcode opcode, struct ibv_mr *local, uint64_t remote, uint32_t key)
{
    struct ibv_sge sge = {.addr = (uintptr_t)local->addr, .length = LENGTH, .lkey = local->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = remote, .rkey = key}}, *bad;
    struct ibv_wc wc;
    int found = 0;
    check(!ibv_post_send(qps[0], &wr, &bad), "post");
    while (found == 0)
        found = ibv_poll_cq(cq, 1, &wc);
    check(found == 1, "poll");
    return ibv_wc_status_str(wc.status);
}

/* Creates new queue pairs, because each failure breaks them, and posts a request; returns its outcome. */
static const char *again(enum ibv_wr_opcode opcode, struct ibv_mr *local, uint64_t remote, uint32_t key)
{
    ibv_destroy_qp(qps[0]);
    ibv_destroy_qp(qps[1]);
    connect_pair();
    return request(opcode, local, remote, key);
}

static void *memory(void)
{
    void *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    return at;
}

int main(int count, char **arguments)
{
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    char *here = memory(), *there = memory();
    setvbuf(stdout, NULL, _IONBF, 0);
    open_device(count > 1 ? arguments[1] : "sv_lo");
    connect_pair();
    struct ibv_mr *mine = ibv_reg_mr(pd, here, LENGTH, all), *other = ibv_reg_mr(pd, there, LENGTH, all);
    check(mine && other, "regions");
    memset(here, 7, LENGTH);
    printf("write: %s\n", request(IBV_WR_RDMA_WRITE, mine, (uintptr_t)there, other->rkey));
    printf("content: %s\n", memcmp(here, there, LENGTH) ? "different" : "same");
    printf("beyond: %s\n", request(IBV_WR_RDMA_WRITE, mine, (uintptr_t)there + 1, other->rkey));
    printf("guessed key: %s\n", again(IBV_WR_RDMA_WRITE, mine, (uintptr_t)there, other->rkey ^ 0x100));
    munmap(there, LENGTH);
    printf("write to unmapped: %s\n", again(IBV_WR_RDMA_WRITE, mine, (uintptr_t)there, other->rkey));
    printf("read from unmapped: %s\n", again(IBV_WR_RDMA_READ, mine, (uintptr_t)there, other->rkey));
    printf("register unmapped: %s\n", ibv_reg_mr(pd, there, LENGTH, all) ? "taken" : "refused");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct ibv_wc wc;
        printf("parent's queue in a child: %s\n", ibv_poll_cq(cq, 1, &wc) < 0 ? "refused" : "taken");
        open_device(count > 1 ? arguments[1] : "sv_lo");
        connect_pair();
        char *mapped = memory();
        struct ibv_mr *own = ibv_reg_mr(pd, mapped, LENGTH, all);
        check(own != NULL, "region");
        printf("child's own: %s\n", request(IBV_WR_RDMA_WRITE, own, (uintptr_t)mapped, own->rkey));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child: %s\n", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "well" : "not well");
    there = memory();
    other = ibv_reg_mr(pd, there, LENGTH, all);
    printf("after it all: %s\n", again(IBV_WR_RDMA_READ, mine, (uintptr_t)there, other->rkey));
    return 0;
}
