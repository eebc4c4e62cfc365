/* A number goes around all ranks, and each adds its own: gompirun -np 4 ./ring */
#include <stdio.h>

#include <mpi.h>

int main(int argc, char **argv) {
	int rank, size, sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank > 0)
		MPI_Recv(&sum, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	sum += rank;
	if (rank < size - 1)
		MPI_Send(&sum, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
	else
		printf("around %d ranks: %d, want %d\n", size, sum, size * (size - 1) / 2);
	MPI_Finalize();
	return 0;
}
