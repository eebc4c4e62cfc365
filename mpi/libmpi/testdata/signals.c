/* A program may have a handler of its own for any signal, as PETSc has for SIGURG: it gets those of
   others, and none that Go's runtime sends itself, as to a thread that packs for long. Handlers run on
   stacks of their own, and on the program's threads. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../../internal/guest/testdata/handlers.h"

static volatile sig_atomic_t caught;

static void count(int sig)
{
	(void)sig;
	caught++;
}

static void fail(const char *what, int n)
{
	fprintf(stderr, "signals: %s: %d\n", what, n);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

enum { N = 1 << 23 };
static short *in, *out;
static MPI_Datatype every_other;

static void pack(void)
{
	int position = 0;
	MPI_Pack(in, 1, every_other, out, N * sizeof *out, &position, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, most;

	in = calloc(N, 2 * sizeof *in), out = calloc(N, sizeof *out);
	handlers_before();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_vector(N, 1, 2, MPI_SHORT, &every_other);
	MPI_Type_commit(&every_other);
	signal(SIGURG, count);
	for (int i = 0; i < 20; i++) {
		in[2 * (N - 1)] = i;
		pack();
		if (out[N - 1] != i)
			fail("the last that was packed", out[N - 1]);
	}
	most = caught;
	if (most)
		fail("unexpected signals", most);
	raise(SIGURG);
	if (caught != 1)
		fail("signals after one was raised", caught);
	handlers_after(pack);
	MPI_Reduce(&rank, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("signals: no errors\n");
	MPI_Finalize();
	return 0;
}
