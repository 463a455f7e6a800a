/* Every rank sends to every other, all ranks sum, and all add to one counter of rank 0, which prints the number of errors. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 1 << 18, ADDS = 50 };

static int content(int from, int to, int at)
{
    return from * 1000003 + to * 7919 + at;
}

static int exchange(int rank, int ranks, int length)
{
    int *out = malloc(sizeof *out * length * ranks), *in = malloc(sizeof *in * length * ranks), wrong = 0;
    for (int peer = 0; peer < ranks; peer++)
        for (int at = 0; at < length; at++)
            out[peer * length + at] = content(rank, peer, at);
    MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, MPI_COMM_WORLD);
    for (int peer = 0; peer < ranks; peer++)
        for (int at = 0; at < length; at++)
            wrong += in[peer * length + at] != content(peer, rank, at);
    free(out);
    free(in);
    return wrong;
}

static int count(int rank, int ranks)
{
    MPI_Win window;
    long *memory, one = 1, before, after = 0;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    *memory = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int at = 0; at < ADDS; at++) {
        MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        after = *memory;
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
    return rank == 0 && after != (long)ADDS * ranks;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int length = 1; length <= LONGEST; length *= 8)
        wrong += exchange(rank, ranks, length);
    long mine = rank + 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (long)ranks * (ranks + 1) / 2;
    wrong += count(rank, ranks);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d wrong\n", ranks, all);
    MPI_Finalize();
    return 0;
}
