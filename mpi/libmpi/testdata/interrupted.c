/* A signal interrupts a short receive in C, which does not go on: the buffer is not there. The handler
 * calls MPI all the same, as those do that report a crash, and ends the job with status 7. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void report(int sig)
{
	MPI_Send(&sig, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	MPI_Abort(MPI_COMM_WORLD, 7);
}

int main(int argc, char **argv)
{
	int rank, x = 0;
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 100; i++) { /* until C does it */
		if (rank == 0)
			MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD), MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
	}
	if (rank == 1) {
		signal(SIGSEGV, report);
		MPI_Recv(page, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (x != SIGSEGV)
			MPI_Abort(MPI_COMM_WORLD, 1);
		MPI_Recv(&x, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	puts("interrupted: the receive has gone on");
	MPI_Finalize();
	return 0;
}
