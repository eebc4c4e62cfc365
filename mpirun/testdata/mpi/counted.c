/* counted calls: calls whose numbers and bytes are known, for the tests of -stats.
 * counted work SLOW: rounds of work, in which rank SLOW takes a fifth longer. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void calls(void)
{
	long one = 1, sum, all[64];
	char in[100000], out[100000];
	memset(out, 0, sizeof out);
	for (int i = 0; i < 1000; i++)
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 10; i++)
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); /* another place */
	for (int i = 0; i < 7; i++)
		MPI_Allgather(&one, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	for (int i = 0; i < 500; i++) {
		MPI_Request r;
		MPI_Isend(out, 100, MPI_DOUBLE, next, 3, MPI_COMM_WORLD, &r);
		MPI_Recv(in, 100, MPI_DOUBLE, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	MPI_Sendrecv(out, 100000, MPI_CHAR, next, 4, in, 100000, MPI_CHAR, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void work(int slow)
{
	long one = 1, sum;
	for (int i = 0; i < 10; i++) {
		usleep(rank == slow ? 48000 : 40000); /* long beside what a busy processor adds */
		MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 2)
		work(atoi(argv[2]));
	else
		calls();
	MPI_Finalize();
	return 0;
}
