/* counted calls: calls whose numbers and bytes are known, for the tests of -stats.
 * counted work SLOW: rounds of work, in which rank SLOW takes a fifth longer.
 * counted alone N: N rounds, then rank 0 works alone, and all call MPI_Finalize.
 * counted crash N: N rounds, before the last of which it stores at address 16.
 * counted hang N: N rounds, before the last of which rank 1 waits for a signal.
 * counted once N: N rounds, before the last of which rank 1 works.
 * counted threads N: while a thread of rank 0 waits for 8 B, another sends N messages of 1 MiB. */
#include <mpi.h>
#include <pthread.h>
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

static void rounds(const char *how, int n)
{
	for (; n > 0; n--) {
		if (n == 1 && rank == 1 && !strcmp(how, "once"))
			usleep(600000);
		if (n == 1 && !strcmp(how, "crash"))
			*(volatile int *)16 = 1;
		if (n == 1 && rank == 1 && !strcmp(how, "hang"))
			pause();
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (rank == 0 && !strcmp(how, "alone"))
		usleep(600000);
}

static MPI_Comm other;
static char big[1 << 20];

static void *waits(void *unused)
{
	char x[8];
	(void)unused;
	MPI_Recv(x, 8, MPI_CHAR, 1, 7, other, MPI_STATUS_IGNORE);
	return NULL;
}

static void threads(int n)
{
	pthread_t t;
	char x[8] = "";
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	if (rank == 0)
		pthread_create(&t, NULL, waits, NULL);
	for (int i = 0; i < n && rank < 2; i++)
		if (rank == 0)
			MPI_Send(big, sizeof big, MPI_CHAR, 1, 9, MPI_COMM_WORLD);
		else
			MPI_Recv(big, sizeof big, MPI_CHAR, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1) {
		usleep(300000);
		MPI_Send(x, 8, MPI_CHAR, 0, 7, other);
	}
	if (rank == 0)
		pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	int level;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 2 && !strcmp(argv[1], "work"))
		work(atoi(argv[2]));
	else if (argc > 2 && !strcmp(argv[1], "threads"))
		threads(atoi(argv[2]));
	else if (argc > 2)
		rounds(argv[1], atoi(argv[2]));
	else
		calls();
	MPI_Finalize();
	return 0;
}
