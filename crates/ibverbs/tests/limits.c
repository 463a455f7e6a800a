/* Requests more of each resource than a NIC has, and prints how each request is refused. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name(int error) {
    switch (error) {
    case 0: return "well";
    case EINVAL: return "EINVAL";
    case ENOMEM: return "ENOMEM";
    case EOPNOTSUPP: return "EOPNOTSUPP";
    default: return strerror(error);
    }
}

static char memory[4096];

int main(int argc, char **argv) {
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (; *list; list++)
        if (argc < 2 || !strcmp(ibv_get_device_name(*list), argv[1])) break;
    struct ibv_context *context = ibv_open_device(*list);
    if (!context) return printf("not opened: %s\n", name(errno)), 0;
    struct ibv_device_attr has;
    ibv_query_device(context, &has);
    printf("queue pairs %d, requests %d, pieces %d, regions %d, shared queues %d, windows %d, reads %d, atomics %s\n", has.max_qp,
           has.max_qp_wr, has.max_sge, has.max_mr, has.max_srq, has.max_mw, has.max_qp_rd_atom, has.atomic_cap ? "yes" : "no");

    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
    printf("shared receive queue: %s\n", name(ibv_create_srq(pd, &shared) ? 0 : errno));
    printf("window: %s\n", name(ibv_alloc_mw(pd, IBV_MW_TYPE_1) ? 0 : errno));
    printf("region for Atomics: %s\n", name(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC) ? 0 : errno));

    int count = 0, error = 0;
    struct ibv_mr *last = NULL, *mr;
    while (count < 200 && (mr = ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE))) last = mr, count++;
    error = count < 200 ? errno : 0;
    printf("regions: %d, then %s\n", count, name(error));
    if (error) {
        ibv_dereg_mr(last);
        printf("one less, one more: %s\n", name(ibv_reg_mr(pd, memory, 64, 0) ? 0 : errno));
    }

    struct ibv_qp_init_attr plain = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}}, init = plain;
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    printf("queue pair: %s, inline data %u\n", name(qp ? 0 : errno), init.cap.max_inline_data);
    init = plain, init.cap.max_inline_data = 256;
    printf("256 bytes of inline data: %s\n", name(ibv_create_qp(pd, &init) ? 0 : errno));
    init = plain, init.cap.max_send_sge = 8;
    printf("8 pieces: %s\n", name(ibv_create_qp(pd, &init) ? 0 : errno));
    init = plain, init.cap.max_send_wr = 10000;
    printf("10000 requests: %s\n", name(ibv_create_qp(pd, &init) ? 0 : errno));
    init = plain, init.qp_type = IBV_QPT_UC;
    printf("unreliable connection: %s\n", name(ibv_create_qp(pd, &init) ? 0 : errno));
    for (count = 0; count < 50; count++) {
        init = plain;
        if (!ibv_create_qp(pd, &init)) break;
    }
    printf("50 queue pairs more: %s\n", name(count < 50 ? errno : 0));
    return 0;
}
