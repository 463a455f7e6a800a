/* An Atomic Write, and flushes to global visibility and to persistence, between two queue pairs of this process; by the
   interface of rdma-core 45 and later, whose last function comes behind the structure of older headers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEEN = 1, SURVIVES = 2, RANGE = 0, REGION = 1, MAY_BE_SEEN = 1 << 8, MAY_SURVIVE = 1 << 9 };

struct newer {
    struct ibv_qp_ex qp;
    void (*flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *make(void)
{
    struct ibv_qp_init_attr_ex wanted = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
        .cap = {16, 16, 1, 1, 8},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | 1 << 11 | IBV_QP_EX_WITH_RDMA_WRITE,
    };
    return ibv_create_qp_ex(context, &wanted);
}

static void connect_to(struct ibv_qp *qp, uint32_t other, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
        .path_mtu = IBV_MTU_1024, .dest_qp_num = other, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
        .ah_attr = {.grh = {.dgid = *gid, .sgid_index = 1, .hop_limit = 1}, .is_global = 1, .port_num = 1},
        .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
    };
    int failed = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    failed |= ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    failed |= ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (failed)
        exit(1);
}

static const char *done(const char *what, int opcode)
{
    static char text[100];
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    snprintf(text, sizeof text, "%s: %s%s", what, ibv_wc_status_str(wc.status),
             wc.status == IBV_WC_SUCCESS && (int)wc.opcode != opcode ? ", but of another kind" : "");
    return text;
}

static const char *flush(struct ibv_qp *qp, const char *what, uint32_t key, void *at, size_t length, int kind, int level)
{
    struct newer *newer = (struct newer *)ibv_qp_to_qp_ex(qp);
    ibv_wr_start(&newer->qp);
    newer->qp.wr_flags = IBV_SEND_SIGNALED;
    newer->flush(&newer->qp, key, (uintptr_t)at, length, kind, level);
    return ibv_wr_complete(&newer->qp) ? "not posted" : done(what, 8);
}

int main(int count, char **words)
{
    int devices;
    struct ibv_device **list = ibv_get_device_list(&devices);
    for (int at = 0; at < devices; at++)
        if (strcmp(ibv_get_device_name(list[at]), words[1]) == 0)
            context = ibv_open_device(list[at]);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_device_attr_ex about;
    ibv_query_device_ex(context, NULL, &about);
    printf("capabilities: %#llx\n", (unsigned long long)about.device_cap_flags_ex >> 38);
    union ibv_gid gid;
    ibv_query_gid(context, 1, 1, &gid);
    struct ibv_qp *qps[2] = {make(), make()};
    connect_to(qps[0], qps[1]->qp_num, &gid);
    connect_to(qps[1], qps[0]->qp_num, &gid);

    int file = open(words[count - 1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, 4096))
        return 1;
    char *kept = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    static uint64_t words_here[16] __attribute__((aligned(4096))), value = 0x1122334455667788;
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | MAY_BE_SEEN;
    struct ibv_mr *mr = ibv_reg_mr(pd, words_here, sizeof words_here, rights);
    struct ibv_mr *lasting = ibv_reg_mr(pd, kept, 4096, rights | MAY_SURVIVE);
    printf("ordinary memory that is to survive: %s\n",
           ibv_reg_mr(pd, words_here, sizeof words_here, rights | MAY_SURVIVE) ? "registered" : strerrorname_np(errno));

    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(qps[0]);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(qp, mr->rkey, (uintptr_t)&words_here[3], &value);
    if (ibv_wr_complete(qp))
        return 1;
    printf("%s\n", done("atomic write", IBV_WC_ATOMIC_WRITE));
    printf("written: %s\n", words_here[3] == value ? "yes" : "no");
    struct ibv_sge piece = {(uintptr_t)&words_here[3], 8, mr->lkey};
    struct ibv_send_wr posted = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_ATOMIC_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)(kept + 64), lasting->rkey}}, *bad;
    if (ibv_post_send(qps[0], &posted, &bad))
        return 1;
    printf("%s\n", done("posted", IBV_WC_ATOMIC_WRITE));
    printf("%s\n", flush(qps[0], "flush", mr->rkey, words_here, 128, SEEN, RANGE));
    printf("%s\n", flush(qps[0], "flush of all", mr->rkey, NULL, 0, SEEN, REGION));
    printf("%s\n", flush(qps[0], "flush to the file", lasting->rkey, kept + 64, 8, SEEN | SURVIVES, RANGE));
    uint64_t read_back = 0;
    printf("in the file: %s\n", pread(file, &read_back, 8, 64) == 8 && read_back == value ? "yes" : "no");
    printf("%s\n", flush(qps[0], "no right to that", mr->rkey, words_here, 8, SURVIVES, RANGE));
    return 0;
}
