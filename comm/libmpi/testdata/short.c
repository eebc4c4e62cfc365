/* Traffic of all kinds between pairs, whose short messages C may send and receive itself. Each rank
 * follows the same script, and checks what it gets. The first argument is the seed, the second how many
 * steps there are. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100000, WINDOW = 16, THREADS = 4 };

static int rank, size;
static __thread uint32_t state;

static uint32_t roll(uint32_t n)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static void fail(const char *what, int step)
{
	fprintf(stderr, "rank %d, step %d: %s\n", rank, step, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(unsigned char *b, int n, int key)
{
	for (int i = 0; i < n; i++)
		b[i] = (unsigned char)(key * 31 + i * 7);
}

static void check(const unsigned char *b, int n, int key, int step)
{
	for (int i = 0; i < n; i++)
		if (b[i] != (unsigned char)(key * 31 + i * 7))
			fail("a byte is wrong", step);
}

static void check_status(MPI_Status *s, int source, int tag, int n, int step)
{
	int got;
	MPI_Get_count(s, MPI_BYTE, &got);
	if (s->MPI_SOURCE != source || s->MPI_TAG != tag || got != n)
		fail("a status is wrong", step);
}

static int length(void)
{
	static const int most[] = {8, 8, 100, 1024, 5000, 9000, MOST};
	return (int)roll((uint32_t)most[roll(7)] + 1);
}

/* message sends one message from one rank to another, in one of several ways. */
static void message(MPI_Comm comm, int me, int from, int to, int step)
{
	static __thread unsigned char b[MOST];
	int n = length(), how = (int)roll(4), get = (int)roll(6), tag = (int)roll(3), flag = 0;
	MPI_Request q;
	MPI_Status s;
	if (me == from) {
		fill(b, n, step);
		switch (how) {
		case 0: MPI_Ssend(b, n, MPI_BYTE, to, tag, comm); break;
		case 1: MPI_Isend(b, n, MPI_BYTE, to, tag, comm, &q), MPI_Wait(&q, MPI_STATUS_IGNORE); break;
		default: MPI_Send(b, n, MPI_BYTE, to, tag, comm);
		}
	}
	if (me != to)
		return;
	switch (get) {
	case 0: MPI_Recv(b, MOST, MPI_BYTE, size == 2 ? MPI_ANY_SOURCE : from, tag, comm, &s); break;
	case 1: MPI_Probe(from, MPI_ANY_TAG, comm, &s), MPI_Recv(b, n, MPI_BYTE, from, s.MPI_TAG, comm, &s); break;
	case 2:
		while (!flag)
			MPI_Iprobe(from, tag, comm, &flag, &s);
		check_status(&s, from, tag, n, step);
		MPI_Recv(b, n, MPI_BYTE, from, tag, comm, &s);
		break;
	case 3: MPI_Irecv(b, MOST, MPI_BYTE, from, tag, comm, &q), MPI_Wait(&q, &s); break;
	case 4:
		MPI_Irecv(b, n, MPI_BYTE, from, tag, comm, &q);
		while (!flag)
			MPI_Test(&q, &flag, &s);
		break;
	default: MPI_Recv(b, n, MPI_BYTE, from, tag, comm, &s);
	}
	check_status(&s, from, tag, n, step);
	check(b, n, step, step);
}

/* window sends several messages with few tags, and receives them in another order than they are sent,
 * so that some are unexpected. */
static void window(MPI_Comm comm, int me, int from, int to, int step)
{
	static __thread unsigned char b[WINDOW][10000];
	MPI_Request q[WINDOW];
	MPI_Status s[WINDOW];
	int n[WINDOW], tag[WINDOW], order[WINDOW], k = 0, how = (int)roll(5), done, index;
	for (int i = 0; i < WINDOW; i++)
		n[i] = (int)roll(i % 4 ? 64 : 10000), tag[i] = (int)roll(3);
	uint32_t shuffled = roll(2);
	if (shuffled) { /* by tag; within a tag in order */
		for (int t = 2; t >= 0; t--)
			for (int i = 0; i < WINDOW; i++)
				if (tag[i] == t)
					order[k++] = i;
	} else {
		for (int i = 0; i < WINDOW; i++)
			order[i] = i;
	}
	if (me == from) {
		for (int i = 0; i < WINDOW; i++) {
			fill(b[i], n[i], step + i);
			MPI_Isend(b[i], n[i], MPI_BYTE, to, tag[i], comm, q + i);
		}
		MPI_Waitall(WINDOW, q, MPI_STATUSES_IGNORE);
	}
	if (me != to)
		return;
	for (int i = 0; i < WINDOW; i++)
		MPI_Irecv(b[order[i]], 10000, MPI_BYTE, from, tag[order[i]], comm, q + order[i]);
	switch (how) {
	case 0: MPI_Waitall(WINDOW, q, s); break;
	case 1:
		for (int i = WINDOW - 1; i >= 0; i--)
			MPI_Wait(q + i, s + i);
		break;
	case 2:
		for (int i = 0; i < WINDOW; i++) {
			MPI_Status st;
			MPI_Waitany(WINDOW, q, &index, &st);
			s[index] = st;
		}
		break;
	case 3:
		for (done = 0; !done;)
			MPI_Testall(WINDOW, q, &done, s);
		break;
	default:
		for (int i = 0; i < WINDOW; i++) {
			if (i == 3) /* that of another request, which is not there */
				for (done = 0; !done;)
					MPI_Request_get_status(q[i], &done, s + i);
			MPI_Wait(q + i, s + i);
		}
	}
	for (int i = 0; i < WINDOW; i++) {
		if (q[i] != MPI_REQUEST_NULL)
			fail("a request is not null", step);
		check_status(s + i, from, tag[i], n[i], step);
		check(b[i], n[i], step + i, step);
	}
}

/* mixed sends on two communicators in turn, with two tags. The receiver takes them in another order, so
 * that the next frame is not the one that it wants, and an older message with the same tag is kept. */
static void mixed(MPI_Comm a, MPI_Comm b, int me, int from, int to, int step)
{
	enum { N = 8, BYTES = 24 };
	/* Even ones are on a, odd ones on b. Those of a tag on one of them are in order. */
	static const int orders[2][N] = {{1, 2, 6, 0, 5, 4, 3, 7}, {2, 1, 6, 0, 5, 4, 3, 7}};
	const int *order = orders[roll(2)];
	unsigned char m[BYTES];
	MPI_Status s;
	for (int i = 0; i < N && me == from; i++) {
		fill(m, BYTES, step + i);
		MPI_Send(m, BYTES, MPI_BYTE, to, i == 2 || i == 6 || i == 5, i % 2 ? b : a);
	}
	for (int i = 0; i < N && me == to; i++) {
		int k = order[i], tag = k == 2 || k == 6 || k == 5;
		MPI_Recv(m, BYTES, MPI_BYTE, from, tag, k % 2 ? b : a, &s);
		check(m, BYTES, step + k, step);
	}
}

/* withdrawn starts a receive of which nothing comes. */
static void withdrawn(MPI_Comm comm, int me, int step)
{
	MPI_Request q;
	MPI_Status s;
	int b, cancelled;
	MPI_Irecv(&b, 1, MPI_INT, !me, 77, comm, &q);
	MPI_Cancel(&q);
	MPI_Wait(&q, &s);
	MPI_Test_cancelled(&s, &cancelled);
	if (!cancelled)
		fail("a receive was not cancelled", step);
}

static void steps(MPI_Comm comm, uint32_t seed, int n)
{
	int me, all, sum;
	MPI_Comm other = comm;
	MPI_Comm_rank(comm, &me);
	MPI_Comm_size(comm, &all);
	state = seed;
	for (int step = 0; step < n; step++) {
		int from = (int)roll((uint32_t)all), to = (from + 1 + (int)roll((uint32_t)all - 1)) % all, what = (int)roll(40);
		MPI_Comm on = roll(3) ? comm : other;
		if (what == 0) {
			MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, comm);
			if (sum != step * all)
				fail("a sum is wrong", step);
		} else if (what == 1) {
			if (other != comm)
				MPI_Comm_free(&other);
			MPI_Comm_dup(comm, &other);
		} else if (what == 2) {
			withdrawn(comm, me, step); /* not on one that the other may have freed: it is told so */
		} else if (what < 6 && other != comm) {
			for (int k = 0; k < 8; k++)
				mixed(comm, other, me, from, to, step), mixed(other, comm, me, to, from, step);
		} else if (what < 10) {
			window(on, me, from, to, step);
		} else {
			for (int k = (int)roll(20); k >= 0; k--) {
				message(on, me, from, to, step);
				message(on, me, to, from, step);
			}
		}
	}
	if (other != comm)
		MPI_Comm_free(&other);
}

struct job {
	MPI_Comm comm;
	uint32_t seed;
	int n;
};

static void *run(void *p)
{
	struct job *j = p;
	steps(j->comm, j->seed, j->n);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, n = atoi(argv[2]);
	uint32_t seed = (uint32_t)atoi(argv[1]);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	steps(MPI_COMM_WORLD, seed, n);
	pthread_t t[THREADS];
	struct job jobs[THREADS];
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.seed = seed + (uint32_t)i + 1, .n = n / 4};
		MPI_Comm_dup(MPI_COMM_WORLD, &jobs[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(t + i, NULL, run, jobs + i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		puts("short: no errors");
	MPI_Finalize();
	return 0;
}
