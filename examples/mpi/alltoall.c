/* alltoall BYTES ROUNDS: the mean time of an MPI_Alltoall with BYTES for each pair of ranks; checks what arrives. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int bytes = argc > 1 ? atoi(argv[1]) : 65536, rounds = argc > 2 ? atoi(argv[2]) : 10;
    char *sent = malloc((size_t)bytes * ranks), *received = malloc((size_t)bytes * ranks);
    memset(sent, rank + 1, (size_t)bytes * ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        memset(received, 0, (size_t)bytes * ranks);
        MPI_Alltoall(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, MPI_COMM_WORLD);
        for (size_t at = 0; at < (size_t)bytes * ranks; at++)
            if (received[at] != (char)(at / bytes + 1)) {
                fprintf(stderr, "rank %d, round %d: wrong byte %zu\n", rank, round, at);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
    double each = (MPI_Wtime() - begin) / rounds;
    if (rank == 0)
        printf("alltoall of %d bytes, %d ranks: %.1f ms\n", bytes, ranks, each * 1e3);
    MPI_Finalize();
    return 0;
}
