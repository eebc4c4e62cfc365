// A program of another MPI library. Its arguments say what goes wrong, and on
// which rank.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int who = argc > 2 ? atoi(argv[2]) : -1;
	const char *own = getenv("PMI_RANK");
	int rank, size, sum;

	if (!strcmp(what, "absent") && own && atoi(own) == who)
		return 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(what, "linger"))
		pause();
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: sum %d\n", rank, size, sum);
	fflush(stdout);
	if (rank == who && !strcmp(what, "abort"))
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (rank == who && !strcmp(what, "exit"))
		_exit(0);
	if (rank == who && !strcmp(what, "kill"))
		kill(getpid(), SIGKILL);
	if (rank == who && !strcmp(what, "hang"))
		MPI_Recv(&sum, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!strcmp(what, "library")) {
		char version[MPI_MAX_LIBRARY_VERSION_STRING];
		int length;
		MPI_Get_library_version(version, &length);
		printf("rank %d on %.60s\n", rank, version);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
