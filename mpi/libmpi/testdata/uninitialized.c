/* A program that valgrind is to find wrong: it decides by what it has never set. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int *x = malloc(sizeof *x);
	MPI_Allreduce(MPI_IN_PLACE, &argc, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (*x == argc)
		printf("by chance\n");
	free(x);
	MPI_Finalize();
	return 0;
}
