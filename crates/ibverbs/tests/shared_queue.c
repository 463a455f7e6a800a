/* Gives an identifier one completion queue, with one channel, for both directions, like rdma-core's own sockets. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

static void must(int outcome)
{
    if (outcome)
        exit(1);
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int times = 0;
    for (; times < 3; times++) {
        struct rdma_cm_id *id;
        must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_bind_addr(id, (struct sockaddr *)&at));
        must(!(id->recv_cq_channel = ibv_create_comp_channel(id->verbs)));
        must(!(id->recv_cq = ibv_create_cq(id->verbs, 10, id, id->recv_cq_channel, 0)));
        id->send_cq_channel = id->recv_cq_channel;
        id->send_cq = id->recv_cq;
        struct ibv_qp_init_attr wanted = {
            .send_cq = id->send_cq,
            .recv_cq = id->recv_cq,
            .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC,
        };
        must(rdma_create_qp(id, NULL, &wanted));
        rdma_destroy_qp(id);
        must(id->send_cq || id->recv_cq || id->send_cq_channel || id->recv_cq_channel);
        must(rdma_destroy_id(id));
    }
    printf("gone: %d times\n", times);
    return 0;
}
