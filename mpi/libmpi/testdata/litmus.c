/* What ranks may see of each other's operations on windows: small programs that find the wrong outcome if it
 * ever happens, for as many seconds as the argument says. Three ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "litmus.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

enum { WORDS = 32 };

static int rank, size;
static MPI_Win win;

/* load is an atomic load. */
static long load(int target, int at)
{
	long none = 0, x;
	OK(MPI_Fetch_and_op(&none, &x, MPI_LONG, target, at, MPI_NO_OP, win));
	OK(MPI_Win_flush(target, win));
	return x;
}

/* Each of two ranks puts, flushes, and gets what the other puts: they cannot both be too early. */
static void store_buffering(long i)
{
	long got = i, seen;
	if (rank < 2) {
		OK(MPI_Win_lock_all(0, win));
		OK(MPI_Put(&i, 1, MPI_LONG, rank, 0, 1, MPI_LONG, win));
		OK(MPI_Win_flush(rank, win));
		OK(MPI_Get(&got, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win));
		OK(MPI_Win_flush(1 - rank, win));
		OK(MPI_Win_unlock_all(win));
	}
	OK(MPI_Allreduce(&got, &seen, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
	CHECK(seen == i);
}

/* Rank 0 puts data to rank 1, flushes and raises a flag there: who sees the flag gets the data. */
static void message_passing(long i)
{
	long data[8];
	OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
	if (rank == 0) {
		for (int k = 0; k < 8; k++)
			data[k] = i;
		OK(MPI_Put(data, 8, MPI_LONG, 1, 4, 8, MPI_LONG, win));
		OK(MPI_Win_flush(1, win));
		OK(MPI_Accumulate(&i, 1, MPI_LONG, 1, 12, 1, MPI_LONG, MPI_REPLACE, win));
	} else {
		while (load(1, 12) != i)
			;
		OK(MPI_Get(data, 8, MPI_LONG, 1, 4, 8, MPI_LONG, win));
		OK(MPI_Win_flush(1, win));
		for (int k = 0; k < 8; k++)
			CHECK(data[k] == i);
	}
	OK(MPI_Win_unlock(1, win));
}

/* All ranks count under an exclusive lock, by get and put, two words that are always the same: who has a shared
 * lock, of this rank or of all, sees that they are. */
static void locks(long i)
{
	long x[2];
	for (int k = 0; k < 10; k++) {
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win));
		OK(MPI_Get(x, 2, MPI_LONG, 2, 14, 2, MPI_LONG, win));
		OK(MPI_Win_flush(2, win));
		CHECK(x[0] == x[1]);
		x[0]++;
		OK(MPI_Put(&x[0], 1, MPI_LONG, 2, 14, 1, MPI_LONG, win));
		OK(MPI_Put(&x[0], 1, MPI_LONG, 2, 15, 1, MPI_LONG, win));
		OK(MPI_Win_unlock(2, win));

		OK(k % 2 ? MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win) : MPI_Win_lock_all(0, win));
		OK(MPI_Get(x, 2, MPI_LONG, 2, 14, 2, MPI_LONG, win));
		OK(MPI_Win_flush_local(2, win));
		CHECK(x[0] == x[1]);
		OK(k % 2 ? MPI_Win_unlock(2, win) : MPI_Win_unlock_all(win));
	}
	OK(MPI_Barrier(MPI_COMM_WORLD));
	OK(MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win));
	CHECK(load(2, 14) == 10 * size * i);
	OK(MPI_Win_unlock(2, win));
}

/* Accumulates of all kinds are atomic: those of elements with gaps, which take another way, too. */
static void atomics(long i)
{
	long one = 1, old = 0, guess, two[2] = {1, 1};
	int four = 1, three;
	double half = .5, before;
	MPI_Datatype apart;
	OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &apart));
	OK(MPI_Type_commit(&apart));
	OK(MPI_Win_lock_all(0, win));
	for (int k = 0; k < 5; k++) {
		do {
			guess = old;
			one = guess + 1;
			OK(MPI_Compare_and_swap(&one, &guess, &old, MPI_LONG, 1, 16, win));
			OK(MPI_Win_flush(1, win));
		} while (old != guess);
		one = 1;
		OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 16, MPI_SUM, win));
		OK(MPI_Win_flush_all(win));
		OK(MPI_Accumulate(&one, 1, MPI_LONG, 1, 16, 1, MPI_LONG, MPI_SUM, win));
		OK(MPI_Accumulate(two, 2, MPI_LONG, 1, 16, 1, apart, MPI_SUM, win)); /* 16 and 18 */
		OK(MPI_Get_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, 1, 18, 1, MPI_LONG, MPI_SUM, win));
		OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, 1, 20, 1, MPI_DOUBLE, MPI_SUM, win));
		OK(MPI_Fetch_and_op(&half, &before, MPI_DOUBLE, 1, 20, MPI_SUM, win));
		OK(MPI_Fetch_and_op(&four, &three, MPI_INT, 1, 22, MPI_SUM, win));
		OK(MPI_Win_flush_local_all(win));
	}
	OK(MPI_Win_unlock_all(win));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
	CHECK(load(1, 16) == 4 * 5 * size * i && load(1, 18) == 2 * 5 * size * i);
	CHECK(load(1, 22) == (int)(5 * size * i));
	OK(MPI_Get(&before, 1, MPI_DOUBLE, 1, 20, 1, MPI_DOUBLE, win));
	OK(MPI_Win_unlock(1, win));
	CHECK(before == 2 * .5 * 5 * size * i);
	MPI_Type_free(&apart);
}

/* Epochs of all kinds, one after the other, in an order that differs: what was put in one is there in the next. */
static void epochs(long i)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	long x = 100 * i + rank, got = -1;
	MPI_Group all, to, from;
	OK(MPI_Win_fence(0, win));
	OK(MPI_Put(&x, 1, MPI_LONG, next, 24, 1, MPI_LONG, win));
	OK(MPI_Win_fence(i % 2 ? MPI_MODE_NOSUCCEED : 0, win));
	OK(MPI_Win_lock(i % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, rank, 0, win));
	OK(MPI_Get(&got, 1, MPI_LONG, rank, 24, 1, MPI_LONG, win));
	OK(MPI_Win_unlock(rank, win));
	CHECK(got == 100 * i + before);

	OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
	OK(MPI_Group_incl(all, 1, &next, &to));
	OK(MPI_Group_incl(all, 1, &before, &from));
	OK(MPI_Win_post(from, 0, win));
	OK(MPI_Win_start(to, 0, win));
	OK(MPI_Put(&x, 1, MPI_LONG, next, 25, 1, MPI_LONG, win));
	OK(MPI_Win_complete(win));
	OK(MPI_Win_wait(win));
	OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
	OK(MPI_Get(&got, 1, MPI_LONG, rank, 25, 1, MPI_LONG, win));
	OK(MPI_Win_unlock(rank, win));
	CHECK(got == 100 * i + before);
	MPI_Group_free(&all);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
}

static void run(double seconds)
{
	double begin = MPI_Wtime();
	int over = 0;
	for (long i = 1; !over; i++) {
		store_buffering(i);
		message_passing(i);
		locks(i);
		atomics(i);
		epochs(i);
		over = MPI_Wtime() - begin > seconds;
		OK(MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD));
	}
	OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : .1;
	long own[WORDS] = {0}, *base;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size >= 3);

	OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	memset(base, 0, sizeof own);
	OK(MPI_Win_fence(0, win));
	run(seconds / 3);
	OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	run(seconds / 3);
	if (argc > 2 && !strcmp(argv[2], "shared")) { /* they share memory */
		OK(MPI_Win_allocate_shared(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
		memset(base, 0, sizeof own);
		OK(MPI_Win_fence(0, win));
		run(seconds / 3);
	}
	if (rank == 0)
		printf("litmus: no errors\n");
	MPI_Finalize();
	return 0;
}
