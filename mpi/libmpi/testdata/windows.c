/* Windows: attributes, epochs, operations of elements with gaps and without, errors. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "windows.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(x) CHECK((x) == MPI_SUCCESS)

static int rank, size;

static int class_of(int code)
{
	int class;
	OK(MPI_Error_class(code, &class));
	return class;
}

static void attributes(MPI_Win win, void *base, MPI_Aint bytes, int unit, int flavor)
{
	void *at;
	int *number, flag;
	MPI_Aint *n;
	OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &at, &flag));
	CHECK(flag && at == base);
	OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &n, &flag));
	CHECK(flag && *n == bytes);
	OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag));
	CHECK(flag && *number == unit);
	OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag));
	CHECK(flag && *number == flavor);
	OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag));
	CHECK(flag && *number == MPI_WIN_UNIFIED);
}

/* operations has all ranks count at rank 0, and put every other number to the next one. */
static void operations(MPI_Win win, long *memory)
{
	long one = 1, old = -1, got = -1, numbers[6];
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Datatype gaps;
	OK(MPI_Type_vector(3, 1, 2, MPI_LONG, &gaps));
	OK(MPI_Type_commit(&gaps));
	for (int i = 0; i < 8; i++)
		memory[i] = 0;
	for (int i = 0; i < 6; i++)
		numbers[i] = 10 * rank + i;
	OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
	for (int i = 0; i < 50; i++)
		OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win));
	OK(MPI_Put(numbers, 1, gaps, next, 1, 1, gaps, win));
	OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
	CHECK(rank || memory[0] == 50 * size);
	for (int i = 0; i < 5; i++)
		CHECK(memory[1 + i] == (i % 2 ? 0 : 10 * before + i));

	OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
	OK(MPI_Accumulate(numbers, 1, MPI_LONG, next, 6, 1, MPI_LONG, MPI_REPLACE, win));
	OK(MPI_Compare_and_swap(&one, numbers, &old, MPI_LONG, next, 6, win));
	OK(MPI_Get(&got, 1, MPI_LONG, next, 6, 1, MPI_LONG, win));
	OK(MPI_Win_flush(next, win));
	CHECK(old == numbers[0]);
	OK(MPI_Get(&got, 1, MPI_LONG, next, 6, 1, MPI_LONG, win));
	OK(MPI_Win_unlock(next, win));
	CHECK(got == one);
	MPI_Type_free(&gaps);
}

/* shared has the ranks of MPI_COMM_TYPE_SHARED, here all, load what the others have stored. */
static void shared(const char *apart)
{
	MPI_Comm host;
	MPI_Win win;
	MPI_Info info;
	MPI_Aint bytes;
	long *mine, *theirs;
	int n, unit, next = (rank + 1) % size;
	OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host));
	OK(MPI_Comm_size(host, &n));
	CHECK(n == size);
	OK(MPI_Info_create(&info));
	OK(MPI_Info_set(info, "alloc_shared_noncontig", apart));
	OK(MPI_Win_allocate_shared(64, sizeof(long), info, host, &mine, &win));
	attributes(win, mine, 64, sizeof(long), MPI_WIN_FLAVOR_SHARED);
	operations(win, mine);
	OK(MPI_Win_shared_query(win, next, &bytes, &unit, &theirs));
	CHECK(bytes == 64 && unit == sizeof(long) && (next == 0 || apart[0] == 't' || theirs == mine + 8));
	OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
	mine[7] = 1000 + rank;
	OK(MPI_Win_sync(win));
	OK(MPI_Barrier(host));
	OK(MPI_Win_sync(win));
	CHECK(theirs[7] == 1000 + next);
	OK(MPI_Barrier(host));
	theirs[7] = 2000 + next;
	OK(MPI_Win_sync(win));
	OK(MPI_Barrier(host));
	OK(MPI_Win_sync(win));
	CHECK(mine[7] == 2000 + rank);
	OK(MPI_Win_unlock_all(win));
	MPI_Info_free(&info);
	OK(MPI_Win_free(&win));
	OK(MPI_Comm_free(&host));
}

/* kill_one ends the last rank, which holds the lock of rank 0: others that poll a window learn of it, and so does
 * who waits for the lock. */
static void kill_one(MPI_Win win)
{
	long one = 1, old;
	int code = MPI_SUCCESS;
	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	if (rank == size - 1)
		OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
	OK(MPI_Barrier(MPI_COMM_WORLD));
	if (rank == 0)
		OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
	for (int from = 0; rank == size - 1 && from < rank; from++) /* which are out of the barrier then */
		OK(MPI_Recv(NULL, 0, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	if (rank == size - 1)
		raise(SIGKILL);
	OK(MPI_Send(NULL, 0, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD));
	while (rank == 0 && code == MPI_SUCCESS) {
		code = MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
		if (code == MPI_SUCCESS)
			code = MPI_Win_flush(1, win);
	}
	if (rank == 1)
		code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	CHECK(code != MPI_SUCCESS);
	CHECK(rank == 0 || MPI_Win_free(&win) != MPI_SUCCESS);
	int (*shrink)(MPI_Comm, MPI_Comm *); /* which old headers lack */
	*(void **)&shrink = dlsym(RTLD_DEFAULT, "MPIX_Comm_shrink");
	MPI_Comm left;
	OK(shrink(MPI_COMM_WORLD, &left));
}

int main(int argc, char **argv)
{
	long own[8], *base, old;
	MPI_Win win;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
	attributes(win, own, sizeof own, sizeof(long), MPI_WIN_FLAVOR_CREATE);
	operations(win, own);
	OK(MPI_Win_free(&win));
	CHECK(win == MPI_WIN_NULL);

	OK(MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
	attributes(win, base, 64, sizeof(long), MPI_WIN_FLAVOR_ALLOCATE);
	operations(win, base);
	if (argc > 1) {
		kill_one(win);
		if (rank == 0)
			printf("windows: no errors\n");
		return MPI_Finalize();
	}

	shared("false");
	shared("true");

	OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
	CHECK(class_of(MPI_Get(&old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win)) == MPI_ERR_RMA_SYNC);
	CHECK(class_of(MPI_Win_lock(-7, 0, 0, win)) == MPI_ERR_LOCKTYPE);
	OK(MPI_Win_lock_all(0, win));
	CHECK(class_of(MPI_Get(&old, 1, MPI_LONG, 0, 8, 1, MPI_LONG, win)) == MPI_ERR_RMA_RANGE);
	CHECK(class_of(MPI_Get(&old, 1, MPI_LONG, size, 0, 1, MPI_LONG, win)) == MPI_ERR_RANK);
	OK(MPI_Get(&old, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win));
	OK(MPI_Win_unlock_all(win));
	OK(MPI_Win_free(&win));
	OK(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)); /* and not freed */
	if (rank == 0)
		printf("windows: no errors\n");
	MPI_Finalize();
	return 0;
}
