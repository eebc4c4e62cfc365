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

/* message sends one message from one rank to another, in one of several ways. Its elements are bytes, or
 * of a datatype of the program's that is freed while receives are under way, and whose handle the next has.
 * That is a run of bytes, or the whole message is a vector of such runs, of which the receiver has more. */
static void message(MPI_Comm comm, int me, int from, int to, int step)
{
	static __thread unsigned char b[MOST], apart[3 * MOST];
	int each = roll(4) ? 1 : 2 + (int)roll(8), n = length() / each, how = (int)roll(4), get = (int)roll(6), tag = (int)roll(3), flag = 0;
	int vector = each > 1 && roll(2), stride = each + 1 + (int)roll(4), more = (int)roll(20);
	int most = MOST / each, bytes = n * each;
	void *data = b;
	MPI_Datatype type = MPI_BYTE;
	MPI_Request q;
	MPI_Status s;
	if (me == from)
		fill(b, bytes, step);
	if (vector) {
		memset(apart, 0xee, (size_t)n * stride);
		for (int i = 0; me == from && i < bytes; i++)
			apart[i / each * stride + i % each] = b[i];
		MPI_Type_vector(me == to ? n + more : n, each, stride, MPI_BYTE, &type);
		MPI_Type_commit(&type);
		data = apart, n = most = 1;
	} else if (each > 1) {
		MPI_Type_contiguous(each, MPI_BYTE, &type), MPI_Type_commit(&type);
	}
	if (me == from) {
		switch (how) {
		case 0: MPI_Ssend(data, n, type, to, tag, comm); break;
		case 1: MPI_Isend(data, n, type, to, tag, comm, &q), MPI_Wait(&q, MPI_STATUS_IGNORE); break;
		default: MPI_Send(data, n, type, to, tag, comm);
		}
	}
	if (me != to && each > 1)
		MPI_Type_free(&type);
	if (me != to)
		return;
	switch (get) {
	case 0: MPI_Recv(data, most, type, size == 2 ? MPI_ANY_SOURCE : from, tag, comm, &s); break;
	case 1: MPI_Probe(from, MPI_ANY_TAG, comm, &s), MPI_Recv(data, n, type, from, s.MPI_TAG, comm, &s); break;
	case 2:
		while (!flag)
			MPI_Iprobe(from, tag, comm, &flag, &s);
		check_status(&s, from, tag, bytes, step);
		MPI_Recv(data, n, type, from, tag, comm, &s);
		break;
	case 3:
		MPI_Irecv(data, most, type, from, tag, comm, &q);
		if (each > 1)
			MPI_Type_free(&type);
		MPI_Wait(&q, &s);
		break;
	case 4:
		MPI_Irecv(data, n, type, from, tag, comm, &q);
		while (!flag)
			MPI_Test(&q, &flag, &s);
		break;
	default: MPI_Recv(data, n, type, from, tag, comm, &s);
	}
	if (each > 1 && type != MPI_DATATYPE_NULL)
		MPI_Type_free(&type);
	check_status(&s, from, tag, bytes, step);
	for (int i = 0; vector && i < bytes; i++) {
		b[i] = apart[i / each * stride + i % each];
		if (apart[i / each * stride + each] != 0xee)
			fail("a byte between runs has changed", step);
	}
	check(b, bytes, step, step);
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

/* complete completes requests in one of several ways. */
static void complete(int n, MPI_Request *q, MPI_Status *s, int step)
{
	int done = 0, index, how = (int)roll(5), left = n;
	MPI_Status st;
	switch (how) {
	case 0: MPI_Waitall(n, q, s); return;
	case 1:
		while (!done)
			MPI_Testall(n, q, &done, s);
		return;
	case 2:
		for (int i = 0; i < n; i++)
			for (done = 0; !done;)
				MPI_Test(q + i, &done, s + i);
		return;
	}
	while (left > 0) {
		if (how == 3)
			MPI_Waitany(n, q, &index, &st), done = 1;
		else
			MPI_Testany(n, q, &index, &done, &st);
		if (done)
			s[index] = st, left--;
	}
	MPI_Testany(n, q, &index, &done, &st);
	if (!done || index != MPI_UNDEFINED)
		fail("a request is active that is over", step);
}

/* ring has each rank exchange with both neighbours, by requests that are posted before something else
 * goes on. */
static void ring(MPI_Comm comm, int me, int all, int step)
{
	static __thread unsigned char in[2][10000], out[2][10000];
	MPI_Request q[4];
	MPI_Status s[4];
	int n = (int)roll(roll(2) ? 9000 : 100), next = (me + 1) % all, last = (me + all - 1) % all, sum, among = (int)roll(4);
	fill(out[0], n, step + me), fill(out[1], n, step + me + 1000);
	if (among == 2) {
		MPI_Sendrecv(out[0], n, MPI_BYTE, next, 11, in[0], 10000, MPI_BYTE, last, roll(2) ? 11 : MPI_ANY_TAG, comm, s);
		check_status(s, last, 11, n, step);
		check(in[0], n, step + last, step);
		return;
	}
	MPI_Irecv(in[0], 10000, MPI_BYTE, last, 11, comm, q);
	MPI_Irecv(in[1], 10000, MPI_BYTE, next, 12, comm, q + 1);
	if (among == 0) {
		MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (sum != step * all)
			fail("a sum is wrong among messages", step);
	} else if (among == 1) {
		message(comm, me, 0, 1, step);
		message(comm, me, 1, 0, step);
	}
	MPI_Isend(out[0], n, MPI_BYTE, next, 11, comm, q + 2);
	MPI_Isend(out[1], n, MPI_BYTE, last, 12, comm, q + 3);
	complete(4, q, s, step);
	check_status(s, last, 11, n, step);
	check_status(s + 1, next, 12, n, step);
	check(in[0], n, step + last, step);
	check(in[1], n, step + next + 1000, step);
}

/* crowd has all send to one rank, which takes what comes. The messages of each are in order. */
static void crowd(MPI_Comm comm, int me, int all, int to, int step)
{
	enum { EACH = 20, BYTES = 40 };
	unsigned char b[WINDOW][BYTES];
	int came[64] = {0}, left = EACH * (all - 1), any = (int)roll(2);
	MPI_Request q[WINDOW];
	MPI_Status s;
	for (int i = 0; i < EACH && me != to; i++) {
		fill(b[0], BYTES, step + i * all + me);
		MPI_Send(b[0], BYTES, MPI_BYTE, to, 20 + i % 3, comm);
	}
	int posted = me == to ? (left < WINDOW ? left : WINDOW) : 0, first = 0;
	for (int i = 0; i < posted; i++)
		MPI_Irecv(b[i], BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, q + i);
	for (int to_post = left - posted; left > 0 && me == to; left--, first = (first + 1) % posted) {
		int done = 0; /* in the order of the receives: it is that in which they match */
		while (any && !done)
			MPI_Test(q + first, &done, &s);
		if (!any)
			MPI_Wait(q + first, &s);
		int k = came[s.MPI_SOURCE]++;
		check_status(&s, s.MPI_SOURCE, 20 + k % 3, BYTES, step);
		check(b[first], BYTES, step + k * all + s.MPI_SOURCE, step);
		if (to_post-- > 0)
			MPI_Irecv(b[first], BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, q + first);
	}
	MPI_Barrier(comm); /* what follows is not for these receives */
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
		int from = (int)roll((uint32_t)all), to = (from + 1 + (int)roll((uint32_t)all - 1)) % all, what = (int)roll(50);
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
		} else if (what < 15) {
			for (int k = (int)roll(20); k >= 0; k--)
				ring(on, me, all, step);
		} else if (what < 18) {
			crowd(on, me, all, from, step);
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
