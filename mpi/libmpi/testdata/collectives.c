/* Collectives of all lengths on several communicators, whose short ones C may do itself, among other calls.
 * Each rank follows the same script, and checks what it gets. The first argument is the seed, the second how
 * many steps there are. */
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 2000, COMMS = 3 };

static int rank, size;
static uint32_t state, own;

static uint32_t next(uint32_t *s, uint32_t n)
{
	*s = *s * 1664525 + 1013904223;
	return (*s >> 8) % n;
}

static uint32_t roll(uint32_t n) { return next(&state, n); }

/* length is below one of several limits of ways, each as often. */
static int length(uint32_t most)
{
	static const uint32_t below[] = {3, 20, 40, 150, 700, 2000};
	uint32_t n = roll(below[roll(6)]);
	return (int)(n < most ? n : most);
}

static void fail(const char *what, int step)
{
	fprintf(stderr, "rank %d, step %d: %s\n", rank, step, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* value is element i of what rank r gives in a step. Of doubles some are not a number, or -0. */
static long value(int r, int i, int step) { return (long)((uint32_t)(r * 7919 + i * 104729 + step * 31) % 2001) - 1000; }

static double real(int r, int i, int step)
{
	long v = value(r, i, step);
	return v % 50 == 0 ? NAN : v % 7 == 0 ? -0.0 : v % 11 == 0 ? 0.0 : (double)v / 3;
}

static double combined(double a, double b, int op)
{
	if (op < 2)
		return op ? a * b : a + b;
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return op == 2 ? (signbit(a) ? a : b) : (signbit(a) ? b : a);
	return op == 2 ? fmin(a, b) : fmax(a, b);
}

static const int in_place = 1, to_root = 2, in_blocks = 4;

#define REDUCTION(name, T, TYPE, element, EQUAL, COMBINED) \
	static void name(MPI_Comm comm, int members, int me, int step, int how) \
	{ \
		MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX}; \
		int n = length(how & in_blocks ? MOST / (uint32_t)members : MOST), op = (int)roll(4), root = (int)roll((uint32_t)members); \
		int all = how & in_blocks ? n * members : n, first = how & in_blocks ? n * me : 0, end = how & in_place ? all : n; \
		T mine[MOST + 1], got[MOST + 1], want; \
		for (int i = 0; i <= all; i++) { \
			mine[i] = (T)element(me, i, step); \
			got[i] = how & in_place ? mine[i] : (T)99; \
		} \
		got[end] = (T)77; \
		const void *send = how & in_place ? MPI_IN_PLACE : mine; \
		if (how & in_blocks) \
			MPI_Reduce_scatter_block(send, got, n, TYPE, ops[op], comm); \
		else if (how & to_root) \
			MPI_Reduce(me == root ? send : mine, me == root ? got : NULL, n, TYPE, ops[op], root, comm); \
		else \
			MPI_Allreduce(send, got, n, TYPE, ops[op], comm); \
		for (int i = 0; i < n && (!(how & to_root) || me == root); i++) { \
			want = (T)element(0, first + i, step); \
			for (int r = 1; r < members; r++) { \
				T y = (T)element(r, first + i, step); \
				want = COMBINED(want, y, op); \
			} \
			if (!EQUAL(want, got[i])) \
				fail("a result of " #name " is wrong", step); \
		} \
		if (got[end] != (T)77) \
			fail(#name " wrote too much", step); \
	}

#define SAME(a, b) ((a) == (b))
#define SAME_REAL(a, b) ((isnan(a) && isnan(b)) || ((a) == (b) && !signbit(a) == !signbit(b)))
#define WHOLE(a, b, op) \
	((op) == 0 ? (__typeof__(a))((uint64_t)(a) + (uint64_t)(b)) : (op) == 1 ? (__typeof__(a))((uint64_t)(a) * (uint64_t)(b)) : \
	 ((op) == 2) == ((a) < (b)) ? (a) : (b))
#define REAL(a, b, op) ((__typeof__(a))combined(a, b, op))
#define REAL4(a, b, op) ((op) == 0 ? (a) + (b) : (op) == 1 ? (a) * (b) : (float)combined(a, b, op))
REDUCTION(ints, int, MPI_INT, value, SAME, WHOLE)
REDUCTION(longs, long, MPI_LONG, value, SAME, WHOLE)
REDUCTION(shorts, short, MPI_SHORT, value, SAME, WHOLE)
REDUCTION(floats, float, MPI_FLOAT, real, SAME_REAL, REAL4)
REDUCTION(doubles, double, MPI_DOUBLE, real, SAME_REAL, REAL)

static void bcast(MPI_Comm comm, int members, int me, int step)
{
	int n = length(MOST) * (int)(1 + roll(5)), root = (int)roll((uint32_t)members);
	char b[5 * MOST + 1];
	for (int i = 0; i <= n; i++)
		b[i] = (char)(me == root ? value(root, i, step) : 1);
	MPI_Bcast(b, n, MPI_CHAR, root, comm);
	for (int i = 0; i < n; i++)
		if (b[i] != (char)value(root, i, step))
			fail("a byte of bcast is wrong", step);
}

/* barrier checks that no rank leaves before all have come. */
static void barrier(MPI_Comm comm, int members, int me, int step)
{
	int token = step, right = (me + 1) % members, left = (me + members - 1) % members, from = -1;
	MPI_Request q;
	MPI_Isend(&token, 1, MPI_INT, right, 5, comm, &q);
	MPI_Barrier(comm);
	int flag = 0;
	while (!flag)
		MPI_Iprobe(left, 5, comm, &flag, MPI_STATUS_IGNORE);
	MPI_Recv(&from, 1, MPI_INT, left, 5, comm, MPI_STATUS_IGNORE);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	if (from != step)
		fail("a message beside a barrier is wrong", step);
}

/* nonblocking starts one, and makes blocking ones behind it. */
static void nonblocking(MPI_Comm comm, int members, int me, int step)
{
	int a = me + step, sum = 0, want = 0, all = 0;
	MPI_Request q;
	MPI_Iallreduce(&a, &sum, 1, MPI_INT, MPI_SUM, comm, &q);
	MPI_Allreduce(&a, &all, 1, MPI_INT, MPI_SUM, comm);
	bcast(comm, members, me, step);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	for (int r = 0; r < members; r++)
		want += r + step;
	if (sum != want || all != want)
		fail("a sum is wrong", step);
}

/* blocks does one of the collectives in which each rank has a block, now and then in place. Element i of what
 * rank from has for rank to is value(from * 7 + to, i, step): where it is for all, to is 0. */
static void blocks(MPI_Comm comm, int members, int me, int step, int in_place)
{
	enum { ALLGATHER, ALLTOALL, GATHER, SCATTER };
	int what = (int)roll(4), root = (int)roll((uint32_t)members), n = length(MOST / members);
	bool splits = what == ALLTOALL || what == SCATTER, gathers = what != SCATTER;
	int16_t send[MOST + 1], recv[MOST + 1];
	for (int i = 0; i < n * members; i++) {
		send[i] = (int16_t)value(me * 7 + (splits ? i / n : 0), splits ? i % n : i, step);
		recv[i] = what == ALLTOALL ? send[i] : i / n == me ? (int16_t)value(me * 7, i % n, step) : 99;
	}
	recv[gathers ? n * members : n] = 77;
	void *from = in_place && (what != GATHER || me == root) ? MPI_IN_PLACE : send;
	if (what == ALLGATHER)
		MPI_Allgather(from, n, MPI_INT16_T, recv, 2 * n, MPI_BYTE, comm);
	else if (what == ALLTOALL)
		MPI_Alltoall(from, n, MPI_INT16_T, recv, n, MPI_INT16_T, comm);
	else if (what == GATHER)
		MPI_Gather(from, n, MPI_INT16_T, me == root ? recv : NULL, n, MPI_INT16_T, root, comm);
	else if (in_place && me == root)
		MPI_Scatter(send, n, MPI_INT16_T, MPI_IN_PLACE, n, MPI_INT16_T, root, comm);
	else
		MPI_Scatter(me == root ? send : NULL, n, MPI_INT16_T, recv, n, MPI_INT16_T, root, comm);
	if (me != root && what == GATHER)
		return;
	if (in_place && what == SCATTER && me == root)
		return;
	for (int i = 0; i < (gathers ? n * members : n); i++) {
		int r = gathers ? i / n : root, to = splits ? me : 0;
		if (recv[i] != (int16_t)value(r * 7 + to, gathers ? i % n : i, step))
			fail("an element of a block is wrong", step);
	}
	if (recv[gathers ? n * members : n] != 77)
		fail("a collective with blocks wrote too much", step);
}

static void make(MPI_Comm *comm, int which)
{
	if (which == 1)
		MPI_Comm_dup(MPI_COMM_WORLD, comm);
	else
		MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm); /* in the other order */
}

/* ahead has one rank send more than heads hold before another reads, which then finds all of it. */
static void ahead(MPI_Comm comm, int members, int me, int step)
{
	enum { TIMES = 200 };
	int root = (int)roll((uint32_t)members), b;
	if (me != root && (me + step) % 2)
		usleep(300);
	for (int i = 0; i < TIMES; i++) {
		b = me == root ? step + i : -1;
		MPI_Bcast(&b, 1, MPI_INT, root, comm);
		if (b != step + i)
			fail("what a rank ahead has sent is wrong", step);
	}
}

static void step_of(MPI_Comm *comms, int step)
{
	int which = (int)roll(COMMS), members, me, how = (int)roll(6);
	MPI_Comm comm = comms[which];
	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &me);
	if (next(&own, 40) == 0) /* the others wait for long, or sleep */
		usleep(next(&own, 4) ? next(&own, 200) : 4000);
	switch (roll(15)) {
	case 0: barrier(comm, members, me, step); break;
	case 1: ints(comm, members, me, step, how); break;
	case 2: longs(comm, members, me, step, how); break;
	case 3: floats(comm, members, me, step, how); break;
	case 4: doubles(comm, members, me, step, how); break;
	case 5: shorts(comm, members, me, step, how); break;
	case 6: nonblocking(comm, members, me, step); break;
	case 7: case 9: blocks(comm, members, me, step, how == 0); break;
	case 8: ahead(comm, members, me, step); break;
	case 10:
		if (which > 0 && roll(5) == 0) { /* another one in its place */
			MPI_Comm_free(&comms[which]);
			make(&comms[which], which);
			break;
		}
		/* fall through */
	default:
		for (int i = 0, n = (int)roll(40); i < n; i++) { /* more than heads hold */
			if (how == 0)
				MPI_Barrier(comm);
			else if (how == 1)
				doubles(comm, members, me, step, roll(2) ? 0 : in_blocks);
			else if (how == 2)
				blocks(comm, members, me, step, 0);
			else
				bcast(comm, members, me, step);
		}
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	state = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
	own = state + (uint32_t)rank * 77;
	MPI_Comm comms[COMMS] = {MPI_COMM_WORLD};
	for (int i = 1; i < COMMS; i++)
		make(&comms[i], i);
	for (int step = 0, steps = argc > 2 ? atoi(argv[2]) : 500; step < steps; step++)
		step_of(comms, step);
	for (int i = 1; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
	MPI_Finalize();
	if (rank == 0)
		printf("collectives: no errors\n");
	return 0;
}
