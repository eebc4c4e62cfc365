// A program of another MPI library. Its arguments say what goes wrong, and on
// which rank.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// hang has each of six ranks wait for another thing that never happens.
static void hang(int rank)
{
	int in, out = rank;
	double one = 1, most;
	MPI_Comm other, ocean;
	MPI_Request request, persistent;
	MPI_Status status;
	int (*allreduce_init)(); // which Open MPI 4's header lacks

	*(void **)&allreduce_init = dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_dup(MPI_COMM_WORLD, &ocean);
	MPI_Comm_set_name(ocean, "ocean");
	allreduce_init(&one, &most, 1, MPI_DOUBLE, MPI_MAX, ocean, MPI_INFO_NULL, &persistent);
	switch (rank) {
	case 0:
		MPI_Iallreduce(&one, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
		MPI_Waitall(1, &request, &status);
		break;
	case 1:
		MPI_Recv(&in, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
		break;
	case 2:
		MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, &status);
		break;
	case 3:
		MPI_Sendrecv(&out, 1, MPI_INT, 2, 7, &in, 1, MPI_INT, 2, 7, other, &status);
		break;
	case 4:
		MPI_Start(&persistent);
		MPI_Wait(&persistent, &status);
		break;
	case 5:
		MPI_Barrier(ocean);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int who = argc > 2 ? atoi(argv[2]) : -1;
	const char *own = getenv("PMI_RANK");
	int rank, size, sum, pair[2] = {0};
	double one = 1, total;

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
	if (!strcmp(what, "hang"))
		hang(rank);
	if (!strcmp(what, "mismatch"))
		MPI_Allreduce(&one, &total, 1, rank == who ? MPI_INT : MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (rank == who && !strcmp(what, "differ"))
		MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == who && !strcmp(what, "truncate"))
		MPI_Send(pair, 2, MPI_INT, 0, 4, MPI_COMM_WORLD);
	if (rank == 0 && !strcmp(what, "truncate"))
		MPI_Recv(pair, 1, MPI_INT, who, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!strcmp(what, "returned"))
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == who && (!strcmp(what, "finalize") || !strcmp(what, "returned"))) {
		MPI_Finalize();
		return 0;
	}
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
