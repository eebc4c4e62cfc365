/* crash HOW: rank 1 crashes, in functions whose lines comments mark; rank 0 waits for it. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int *volatile address = (int *)16;
static volatile int zero;
static void (*volatile nothing)(void);

__attribute__((noinline)) static int store(void)
{
	return *address = 1; /* store */
}

__attribute__((noinline)) static int overflow(volatile char *up)
{
	volatile char room[100000];
	room[0] = *up, room[1] = overflow(room); /* overflow */
	return room[1];
}

static void *thread(void *unused)
{
	store(); /* thread */
	return unused;
}

static void own(int sig) { _exit(sig == SIGSEGV ? 7 : 8); }

static void reduce(void *in, void *out, int *n, MPI_Datatype *type)
{
	(void)in, (void)out, (void)n, (void)type;
	store(); /* operator */
}

__attribute__((noinline)) static int crash(const char *how)
{
	pthread_t threads[8];
	int x = 1, y;
	MPI_Op op;
	if (!strcmp(how, "store"))
		return store() + 1; /* called */
	if (!strcmp(how, "divide"))
		zero = 10 / zero; /* divide */
	if (!strcmp(how, "null"))
		nothing(); /* null */
	if (!strcmp(how, "illegal"))
		__builtin_trap(); /* illegal */
	if (!strcmp(how, "abort"))
		abort(); /* abort */
	if (!strcmp(how, "overflow"))
		return overflow("") + 1;
	if (!strcmp(how, "sent"))
		return kill(getpid(), SIGSEGV);
	if (!strcmp(how, "own"))
		signal(SIGSEGV, own);
	if (!strcmp(how, "own") || !strcmp(how, "earlier"))
		return store() + 1;
	if (!strcmp(how, "child")) {
		if (!fork())
			abort();
		exit(9);
	}
	if (!strcmp(how, "operator")) {
		MPI_Op_create(reduce, 1, &op);
		MPI_Allreduce(&x, &y, 1, MPI_INT, op, MPI_COMM_SELF);
		MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
	}
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	return pthread_join(threads[0], NULL);
}

int main(int argc, char **argv)
{
	int rank;
	if (!strcmp(argv[1], "earlier"))
		signal(SIGSEGV, own);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 1)
		crash(argv[1]); /* main */
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
