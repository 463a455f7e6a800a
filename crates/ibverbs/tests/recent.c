/* Functions that older systems' headers do not have, looked up by name and version like NCCL does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct mr_attributes {
    size_t length;
    int access;
    uint64_t given, iova;
    void *address;
    int fd;
    uint64_t offset;
    void *handle, *buffer;
};

int main(void)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context = ibv_open_device(list[count - 1]);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct mr_attributes *);
    void *(*alloc_buf)(struct ibv_pd *, size_t, void **);
    struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *, void *, void *, size_t, int);
    void (*free_buf)(void *);
    void *(*create_counter)(struct ibv_context *, void *);
    *(void **)&reg_mr_ex = dlvsym(RTLD_DEFAULT, "ibv_reg_mr_ex", "IBVERBS_1.15");
    *(void **)&alloc_buf = dlvsym(RTLD_DEFAULT, "ibv_alloc_buf", "IBVERBS_1.17");
    *(void **)&reg_buf_mr = dlvsym(RTLD_DEFAULT, "ibv_reg_buf_mr", "IBVERBS_1.17");
    *(void **)&free_buf = dlvsym(RTLD_DEFAULT, "ibv_free_buf", "IBVERBS_1.17");
    *(void **)&create_counter = dlvsym(RTLD_DEFAULT, "ibv_create_comp_cntr", "IBVERBS_1.18");

    char memory[4096];
    struct mr_attributes wanted = {sizeof memory, IBV_ACCESS_LOCAL_WRITE, 3, 0x1000, memory, -1, 0, NULL, NULL};
    struct ibv_mr *mr = reg_mr_ex(pd, &wanted);
    printf("memory: %zu bytes\n", mr ? mr->length : 0);
    wanted.given |= 1 << 2;
    printf("memory of a descriptor: %s\n", reg_mr_ex(pd, &wanted) ? "taken" : strerrorname_np(errno));

    void *handle, *buffer = alloc_buf(pd, 5000, &handle);
    mr = reg_buf_mr(pd, handle, buffer, 5000, IBV_ACCESS_LOCAL_WRITE);
    printf("buffer: %zu bytes, %s\n", mr ? mr->length : 0, (uintptr_t)buffer % 4096 ? "anywhere" : "aligned");
    ibv_dereg_mr(mr);
    free_buf(handle);
    printf("counter: %s\n", create_counter(context, NULL) ? "made" : strerrorname_np(errno));
    return 0;
}
