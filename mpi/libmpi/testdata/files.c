/* Files: files FILE. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "files.c, line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 1); } } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)
#define FAILS(call, error) CHECK(class_of(call) == (error))

static int rank, size;
static char *name; /* of a file that all ranks reach */
static const int READ_WRITE = MPI_MODE_CREATE | MPI_MODE_RDWR;

static int class_of(int code)
{
	int class;
	MPI_Error_class(code, &class);
	return class;
}

static int count_of(MPI_Status *st, MPI_Datatype t)
{
	int n;
	MPI_Get_count(st, t, &n);
	return n;
}

static MPI_File opened(int mode)
{
	MPI_File f;
	OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f));
	return f;
}

/* fresh opens a file that is empty. */
static MPI_File fresh(void)
{
	MPI_File f = opened(READ_WRITE | MPI_MODE_DELETE_ON_CLOSE);
	OK(MPI_File_set_size(f, 0));
	return f;
}

static MPI_Offset size_of(MPI_File f)
{
	MPI_Offset n;
	OK(MPI_File_get_size(f, &n));
	return n;
}

/* modes: what is opened how, and what of it fails on all ranks. */
static void modes(void)
{
	MPI_File f;
	MPI_Group all, of;
	int amode, same, x = 7;
	MPI_Offset at;
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), MPI_ERR_NO_SUCH_FILE);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &f), MPI_ERR_AMODE);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f), MPI_ERR_AMODE);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, READ_WRITE | 1 << 20, MPI_INFO_NULL, &f), MPI_ERR_AMODE);
	FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
	if (size > 1) { /* one rank that fails, or asks for something else, fails on all */
		FAILS(MPI_File_open(MPI_COMM_WORLD, name, rank == 1 ? MPI_MODE_CREATE : READ_WRITE, MPI_INFO_NULL, &f), MPI_ERR_AMODE);
		FAILS(MPI_File_open(MPI_COMM_WORLD, name, rank == 1 ? READ_WRITE : MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f), MPI_ERR_NOT_SAME);
		FAILS(MPI_File_open(MPI_COMM_WORLD, rank == 1 ? "/no/such/folder/file" : name, READ_WRITE, MPI_INFO_NULL, &f), MPI_ERR_NO_SUCH_FILE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		unlink(name);
	MPI_Barrier(MPI_COMM_WORLD);

	f = opened(READ_WRITE | MPI_MODE_EXCL);
	OK(MPI_File_get_amode(f, &amode));
	CHECK(amode == (READ_WRITE | MPI_MODE_EXCL));
	OK(MPI_File_get_group(f, &of));
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_compare(all, of, &same);
	CHECK(same == MPI_IDENT);
	MPI_Group_free(&all);
	MPI_Group_free(&of);
	OK(MPI_File_write_at(f, rank * sizeof x, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
#ifndef MPI_ABI_VERSION
	CHECK(MPI_File_f2c(MPI_File_c2f(f)) == f && MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
#endif
	OK(MPI_File_close(&f));
	CHECK(f == MPI_FILE_NULL);
	FAILS(MPI_File_close(&f), MPI_ERR_FILE);
	FAILS(MPI_File_open(MPI_COMM_WORLD, name, READ_WRITE | MPI_MODE_EXCL, MPI_INFO_NULL, &f), MPI_ERR_FILE_EXISTS);

	f = opened(MPI_MODE_RDONLY);
	FAILS(MPI_File_write(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
	FAILS(MPI_File_set_size(f, 0), MPI_ERR_READ_ONLY);
	CHECK(size_of(f) == (MPI_Offset)(size * sizeof x));
	OK(MPI_File_close(&f));
	f = opened(MPI_MODE_WRONLY | MPI_MODE_APPEND);
	OK(MPI_File_get_position(f, &at));
	CHECK(at == (MPI_Offset)(size * sizeof x));
	OK(MPI_File_get_position_shared(f, &at));
	CHECK(at == (MPI_Offset)(size * sizeof x));
	FAILS(MPI_File_read(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
	OK(MPI_File_close(&f));
	f = opened(MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
	OK(MPI_File_close(&f));
	CHECK(access(name, F_OK) != 0);
}

/* sizes: and what comes where a file ends. */
static void sizes(void)
{
	MPI_File f = fresh();
	MPI_Status st;
	char b[100];
	memset(b, 'a' + rank, sizeof b);
	OK(MPI_File_preallocate(f, 50));
	CHECK(size_of(f) == 50);
	OK(MPI_File_set_size(f, 1000));
	CHECK(size_of(f) == 1000);
	if (size > 1)
		FAILS(MPI_File_set_size(f, rank), MPI_ERR_NOT_SAME);
	OK(MPI_File_write_at_all(f, rank * 100, b, 100, MPI_BYTE, &st));
	CHECK(count_of(&st, MPI_BYTE) == 100);
	OK(MPI_File_set_size(f, size * 100));
	OK(MPI_File_sync(f));
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPI_File_read_at(f, size * 100 - 30, b, 100, MPI_BYTE, &st)); /* 30 are there */
	CHECK(count_of(&st, MPI_BYTE) == 30 && b[0] == 'a' + size - 1 && b[29] == 'a' + size - 1 && b[30] == 'a' + rank);
	OK(MPI_File_read_at(f, size * 100, b, 100, MPI_BYTE, &st));
	CHECK(count_of(&st, MPI_BYTE) == 0);
	FAILS(MPI_File_read_at(f, -1, b, 100, MPI_BYTE, &st), MPI_ERR_ARG);
	OK(MPI_File_close(&f));
}

/* views: ranks take turns, five of every 5*size integers each. */
static void views(void)
{
	enum { TURNS = 3000, EACH = 5 }; /* more runs than a call of the system takes */
	MPI_File f = fresh();
	MPI_Datatype turns, mine, e, t, gaps;
	MPI_Offset at, disp;
	MPI_Aint lb, extent;
	MPI_Status st;
	char rep[MPI_MAX_DATAREP_STRING];
	int n = TURNS * EACH, i, combiner, ni, na, nt;
	int *data = malloc(2 * n * sizeof *data), *back = malloc(2 * n * sizeof *back);
	MPI_Type_contiguous(EACH, MPI_INT, &turns);
	MPI_Type_create_resized(turns, 0, EACH * size * sizeof(int), &mine);
	MPI_Type_commit(&mine);
	OK(MPI_File_set_view(f, 8 + rank * EACH * sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
	MPI_Type_free(&turns);
	MPI_Type_free(&mine);
	for (i = 0; i < n; i++)
		data[i] = rank * n + i;
	OK(MPI_File_write_all(f, data, n / 3, MPI_INT, &st));
	OK(MPI_File_write_all(f, data + n / 3, n - n / 3, MPI_INT, &st));
	CHECK(count_of(&st, MPI_INT) == n - n / 3);
	OK(MPI_File_get_position(f, &at));
	CHECK(at == n);
	OK(MPI_File_get_byte_offset(f, EACH + 1, &disp));
	CHECK(disp == (MPI_Offset)(8 + (rank * EACH + EACH * size + 1) * sizeof(int)));
	OK(MPI_File_sync(f));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(size_of(f) == (MPI_Offset)(8 + n * size * sizeof(int)));
	OK(MPI_File_seek(f, 0, MPI_SEEK_END));
	OK(MPI_File_get_position(f, &at));
	CHECK(at == n);
	FAILS(MPI_File_seek(f, -n - 1, MPI_SEEK_CUR), MPI_ERR_ARG);
	OK(MPI_File_seek(f, -n + 7, MPI_SEEK_CUR));
	OK(MPI_File_read(f, back, n - 7, MPI_INT, &st));
	CHECK(count_of(&st, MPI_INT) == n - 7 && memcmp(back, data + 7, (n - 7) * sizeof *back) == 0);

	MPI_Type_vector(n, 1, 2, MPI_INT, &gaps); /* memory with gaps, too */
	MPI_Type_commit(&gaps);
	memset(back, 0, 2 * n * sizeof *back);
	OK(MPI_File_read_at_all(f, 0, back, 1, gaps, &st));
	CHECK(count_of(&st, gaps) == 1);
	for (i = 0; i < n; i++)
		CHECK(back[2 * i] == data[i] && (i == n - 1 || back[2 * i + 1] == 0));
	for (i = 0; i < n; i++)
		back[2 * i] = -back[2 * i];
	OK(MPI_File_write_at_all(f, 0, back, 1, gaps, &st));
	OK(MPI_File_read_at_all(f, 0, back, n, MPI_INT, &st));
	for (i = 0; i < n; i++)
		CHECK(back[i] == -data[i]);

	OK(MPI_File_get_view(f, &disp, &e, &t, rep));
	CHECK(disp == (MPI_Offset)(8 + rank * EACH * sizeof(int)) && e == MPI_INT && strcmp(rep, "native") == 0);
	MPI_Type_get_extent(t, &lb, &extent);
	MPI_Type_get_envelope(t, &ni, &na, &nt, &combiner);
	CHECK(extent == (MPI_Aint)(EACH * size * sizeof(int)) && combiner == MPI_COMBINER_RESIZED);
	MPI_Type_free(&t);
	FAILS(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "foreign", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
	if (size > 1) {
		FAILS(MPI_File_set_view(f, 0, rank == 1 ? MPI_DOUBLE : MPI_INT, MPI_DOUBLE, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
		FAILS(MPI_File_set_view(f, rank == 1 ? -5 : 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
	}
	FAILS(MPI_File_read(f, back, 3, MPI_BYTE, &st), MPI_ERR_IO); /* no multiple of the etype */
	OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL));
	OK(MPI_File_read_at(f, 8, back, 4 * n, MPI_BYTE, &st));
	for (i = 0; i < n; i++) { /* of all ranks, in turn */
		int turn = i / EACH / size, of = i / EACH % size;
		CHECK(back[i] == -(of * n + turn * EACH + i % EACH));
	}
	MPI_Type_free(&gaps);
	OK(MPI_File_close(&f));
	free(data);
	free(back);
}

/* arrays: each rank has rows of a matrix in memory with a border, columns in the file. */
static void arrays(void)
{
	enum { N = 12 };
	MPI_File f = fresh();
	MPI_Datatype columns, inner;
	MPI_Status st;
	int width = N / size, i, j;
	int all[2] = {N, N}, part[2] = {N, width}, from[2] = {0, rank * width};
	int bordered[2] = {N + 2, width + 2}, one[2] = {1, 1};
	double a[N + 2][N + 2], whole[N][N], *in = &a[0][0];
	memset(a, 0, sizeof a);
	for (i = 0; i < N; i++)
		for (j = 0; j < width; j++)
			in[(i + 1) * (width + 2) + j + 1] = i * N + rank * width + j;
	MPI_Type_create_subarray(2, all, part, from, MPI_ORDER_C, MPI_DOUBLE, &columns);
	MPI_Type_create_subarray(2, bordered, part, one, MPI_ORDER_C, MPI_DOUBLE, &inner);
	MPI_Type_commit(&columns);
	MPI_Type_commit(&inner);
	OK(MPI_File_set_view(f, 0, MPI_DOUBLE, columns, "native", MPI_INFO_NULL));
	OK(MPI_File_write_all(f, a, 1, inner, &st));
	CHECK(count_of(&st, inner) == 1);
	OK(MPI_File_sync(f));
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
	OK(MPI_File_read_all(f, whole, N * N, MPI_DOUBLE, &st));
	for (i = 0; i < N; i++)
		for (j = 0; j < width * size; j++)
			CHECK(whole[i][j] == i * N + j);
	MPI_Type_free(&columns);
	MPI_Type_free(&inner);
	OK(MPI_File_close(&f));
}

/* shared_pointer: records of all ranks in any order, and in the order of ranks. */
static void shared_pointer(void)
{
	enum { RECORDS = 40 };
	MPI_File f = fresh();
	MPI_Offset at;
	MPI_Status st;
	MPI_Request r;
	int i, k, seen[RECORDS * 16], record[2];
	OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	for (i = 0; i < RECORDS; i++) {
		record[0] = rank, record[1] = i;
		if (i % 2) {
			OK(MPI_File_iwrite_shared(f, record, 2, MPI_INT, &r));
			OK(MPI_Wait(&r, &st));
		} else {
			OK(MPI_File_write_shared(f, record, 2, MPI_INT, &st));
		}
		CHECK(count_of(&st, MPI_INT) == 2);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPI_File_get_position_shared(f, &at));
	CHECK(at == 2 * RECORDS * size && size_of(f) == (MPI_Offset)(at * sizeof(int)));
	memset(seen, 0, sizeof seen);
	for (i = 0; i < RECORDS * size; i++) {
		OK(MPI_File_read_at(f, 2 * i, record, 2, MPI_INT, &st));
		seen[record[0] * RECORDS + record[1]]++;
	}
	for (i = 0; i < RECORDS * size; i++)
		CHECK(seen[i] == 1);
	MPI_Barrier(MPI_COMM_WORLD);

	if (size > 1)
		FAILS(MPI_File_seek_shared(f, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
	FAILS(MPI_File_seek_shared(f, -3 * RECORDS * size, MPI_SEEK_CUR), MPI_ERR_ARG);
	OK(MPI_File_seek_shared(f, -2 * RECORDS * size, MPI_SEEK_END));
	OK(MPI_File_get_position_shared(f, &at));
	CHECK(at == 0);
	MPI_Barrier(MPI_COMM_WORLD);
	int mine[16];
	for (k = 0; k < 3; k++) { /* rank+1 integers each */
		for (i = 0; i <= rank; i++)
			mine[i] = 100 * k + rank;
		OK(MPI_File_write_ordered(f, mine, rank + 1, MPI_INT, &st));
		CHECK(count_of(&st, MPI_INT) == rank + 1);
	}
	if (size > 1) /* one that fails fails on all */
		FAILS(MPI_File_write_ordered(f, mine, rank == 1 ? -1 : 1, MPI_INT, &st), MPI_ERR_COUNT);
	OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
	for (k = 0; k < 3; k++) {
		OK(MPI_File_read_ordered_begin(f, mine, rank + 1, MPI_INT));
		OK(MPI_File_read_ordered_end(f, mine, &st));
		CHECK(count_of(&st, MPI_INT) == rank + 1);
		for (i = 0; i <= rank; i++)
			CHECK(mine[i] == 100 * k + rank);
	}
	OK(MPI_File_set_view(f, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	OK(MPI_File_get_position_shared(f, &at));
	CHECK(at == 0);
	OK(MPI_File_close(&f));

	int write_only = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE;
	f = opened(write_only);
	FAILS(MPI_File_write(f, mine, 1, MPI_INT, &st), MPI_ERR_UNSUPPORTED_OPERATION);
	FAILS(MPI_File_seek(f, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
	OK(MPI_File_write_ordered(f, mine, 1, MPI_INT, &st));
	OK(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	OK(MPI_File_write_ordered(f, mine, 2, MPI_INT, &st));
	MPI_Datatype e, t;
	char rep[MPI_MAX_DATAREP_STRING];
	MPI_Barrier(MPI_COMM_WORLD);
	OK(MPI_File_get_view(f, &at, &e, &t, rep));
	CHECK(at == (MPI_Offset)(size * sizeof(int)) && size_of(f) == (MPI_Offset)(3 * size * sizeof(int)));
	OK(MPI_File_close(&f));
}

/* nonblocking: many accesses at once, and split collectives. */
static void nonblocking(void)
{
	enum { N = 60, EACH = 1000 };
	MPI_File f = fresh();
	MPI_Request r[N];
	MPI_Status st[N];
	int i, j, flag, (*data)[EACH] = malloc(N * sizeof *data), one[EACH], freed[EACH];
	OK(MPI_File_set_view(f, rank * N * sizeof *data, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
	for (i = 0; i < N; i++) {
		for (j = 0; j < EACH; j++)
			data[i][j] = rank + 10 * i + j;
		if (i % 3 == 0)
			OK(MPI_File_iwrite_at(f, i * EACH, data[i], EACH, MPI_INT, &r[i]));
		else if (i % 3 == 1)
			OK(MPI_File_iwrite_at_all(f, i * EACH, data[i], EACH, MPI_INT, &r[i]));
		else
			OK(MPI_File_iwrite_at(f, i * EACH, data[i], EACH - i, MPI_INT, &r[i]));
	}
	OK(MPI_Waitall(N, r, st));
	for (i = 0; i < N; i++)
		CHECK(count_of(&st[i], MPI_INT) == (i % 3 == 2 ? EACH - i : EACH));
	OK(MPI_File_write_at(f, (N - 1) * EACH, data[N - 1], EACH, MPI_INT, st));
	for (i = 0; i < 3; i++) {
		if (i % 2)
			OK(MPI_File_iread_all(f, one, EACH, MPI_INT, r));
		else
			OK(MPI_File_iread(f, one, EACH, MPI_INT, r));
		for (flag = 0; !flag;)
			OK(MPI_Test(r, &flag, st));
		CHECK(count_of(st, MPI_INT) == EACH && memcmp(one, data[i], i == 2 ? (EACH - 2) * sizeof(int) : sizeof one) == 0);
	}
	MPI_File_seek(f, 0, MPI_SEEK_SET);
	OK(MPI_File_iread_at(f, EACH, freed, EACH, MPI_INT, r));
	OK(MPI_Request_free(r)); /* closing waits for it */

	OK(MPI_File_read_all_begin(f, data[1], EACH, MPI_INT));
	FAILS(MPI_File_read_at_all_begin(f, 0, one, EACH, MPI_INT), MPI_ERR_IO);
	FAILS(MPI_File_read_at_all_end(f, one, st), MPI_ERR_IO);
	OK(MPI_File_read_all_end(f, data[1], st));
	FAILS(MPI_File_read_all_end(f, data[1], st), MPI_ERR_IO);
	CHECK(count_of(st, MPI_INT) == EACH && memcmp(data[0], data[1], sizeof one) == 0);
	OK(MPI_File_write_at_all_begin(f, 5 * EACH, data[1], EACH, MPI_INT));
	OK(MPI_File_write_at_all_end(f, data[1], st));
	OK(MPI_File_read_at(f, 5 * EACH, one, EACH, MPI_INT, st));
	CHECK(memcmp(one, data[0], sizeof one) == 0);
	OK(MPI_File_close(&f));
	for (j = 0; j < EACH; j++)
		CHECK(freed[j] == rank + 10 + j);
	free(data);
}

/* atomic: what ranks write to one place, all at once, is that of one of them; a reader sees it so. */
static void atomic_mode(void)
{
	enum { ROUNDS = 20, N = 30000 };
	MPI_File f = fresh();
	MPI_Datatype halves;
	int flag, i, k;
	char *b = malloc(2 * N);
	OK(MPI_File_get_atomicity(f, &flag));
	CHECK(!flag);
	if (size > 1)
		FAILS(MPI_File_set_atomicity(f, rank == 1), MPI_ERR_NOT_SAME);
	OK(MPI_File_set_atomicity(f, 1));
	OK(MPI_File_get_atomicity(f, &flag));
	CHECK(flag);
	MPI_Type_create_resized(MPI_BYTE, 0, 2, &halves); /* each second byte: many calls of the system */
	MPI_Type_commit(&halves);
	OK(MPI_File_set_view(f, 0, MPI_BYTE, halves, "native", MPI_INFO_NULL));
	for (k = 0; k < ROUNDS; k++) {
		int n = k % 4 ? N / 30 : N / 100;
		memset(b, 'a' + rank, n);
		OK(MPI_File_write_at(f, 0, b, n, MPI_BYTE, MPI_STATUS_IGNORE));
		OK(MPI_File_read_at(f, 0, b, n, MPI_BYTE, MPI_STATUS_IGNORE));
		for (i = 1; k % 4 == 0 && i < n; i++)
			CHECK(b[i] == b[0]);
	}
	MPI_Type_free(&halves);
	OK(MPI_File_close(&f));
	free(b);
}

/* external: numbers are big-endian in the file, and a long has 4 bytes. */
static void external(void)
{
	MPI_File f = fresh();
	MPI_Aint extent;
	MPI_Datatype mixed, types[2] = {MPI_LONG, MPI_INT}, pair;
	MPI_Status st;
	int ones[2] = {1, 1}, i, numbers[3] = {1, -2, 0x01020304};
	MPI_Aint at[2] = {0, 8};
	long longs[3] = {-5, 6, 7}, back[3] = {0, 0, 0};
	unsigned char raw[12];
	OK(MPI_File_set_view(f, rank * 24, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
	OK(MPI_File_write(f, numbers, 3, MPI_INT, &st));
	CHECK(count_of(&st, MPI_INT) == 3);
	memset(numbers, 0, sizeof numbers);
	OK(MPI_File_read_at(f, 0, numbers, 3, MPI_INT, &st));
	CHECK(numbers[0] == 1 && numbers[1] == -2 && numbers[2] == 0x01020304);
	OK(MPI_File_get_type_extent(f, MPI_LONG, &extent));
	CHECK(extent == 4);
	OK(MPI_File_set_view(f, rank * 24 + 12, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
	OK(MPI_File_write(f, longs, 3, MPI_LONG, &st));
	CHECK(count_of(&st, MPI_LONG) == 3);
	OK(MPI_File_read_at(f, 1, back, 2, MPI_LONG, &st));
	CHECK(count_of(&st, MPI_LONG) == 2 && back[0] == 6 && back[1] == 7);
	MPI_Type_create_struct(2, ones, at, types, &mixed);
	MPI_Type_create_resized(mixed, 0, 32, &pair);
	MPI_Type_commit(&pair);
	FAILS(MPI_File_set_view(f, 0, MPI_LONG, pair, "external32", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
	MPI_Type_free(&mixed);
	MPI_Type_free(&pair);
	OK(MPI_File_set_view(f, rank * 24, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
	OK(MPI_File_read(f, raw, 12, MPI_BYTE, &st));
	static const unsigned char want[12] = {0, 0, 0, 1, 255, 255, 255, 254, 1, 2, 3, 4};
	for (i = 0; i < 12; i++)
		CHECK(raw[i] == want[i]);
	OK(MPI_File_close(&f));
}

static MPI_File handled;
static int handled_class;
static void handler(MPI_File *f, int *error, ...) { handled = *f, handled_class = class_of(*error); }

/* errors: handlers, and what a full device says. */
static void errors(void)
{
	MPI_File f, full;
	MPI_Errhandler h, was;
	MPI_Request r;
	MPI_Status st;
	MPI_Info hints, of;
	int x = 1, flag;
	char b[4096], text[MPI_MAX_INFO_VAL + 1];
	memset(b, 0, sizeof b);
	OK(MPI_File_get_errhandler(MPI_FILE_NULL, &was));
	CHECK(was == MPI_ERRORS_RETURN);
	OK(MPI_File_create_errhandler(handler, &h));
	OK(MPI_File_set_errhandler(MPI_FILE_NULL, h));
	FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
	CHECK(handled == MPI_FILE_NULL && handled_class == MPI_ERR_NO_SUCH_FILE);
	f = fresh(); /* has the handler from the beginning */
	OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
	FAILS(MPI_File_read_at(f, -1, &x, 1, MPI_INT, &st), MPI_ERR_ARG);
	CHECK(handled == f && handled_class == MPI_ERR_ARG);
	OK(MPI_File_get_errhandler(f, &was));
	CHECK(was == h);
	MPI_Errhandler_free(&was);
	handled_class = 0;
	OK(MPI_File_call_errhandler(f, MPI_ERR_QUOTA));
	CHECK(handled_class == MPI_ERR_QUOTA);

	MPI_Info_create(&hints);
	MPI_Info_set(hints, "access_style", "read_once");
	OK(MPI_File_set_info(f, hints));
	MPI_Info_free(&hints);
	OK(MPI_File_get_info(f, &of));
	MPI_Info_get(of, "access_style", MPI_MAX_INFO_VAL, text, &flag);
	CHECK(flag && strcmp(text, "read_once") == 0);
	MPI_Info_free(&of);

	OK(MPI_File_open(MPI_COMM_SELF, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &full));
	FAILS(MPI_File_write(full, b, sizeof b, MPI_BYTE, &st), MPI_ERR_NO_SPACE);
	CHECK(count_of(&st, MPI_BYTE) == 0);
	OK(MPI_File_set_errhandler(full, h));
	OK(MPI_File_iwrite(full, b, sizeof b, MPI_BYTE, &r));
	FAILS(MPI_Wait(&r, &st), MPI_ERR_NO_SPACE);
	CHECK(handled == full && handled_class == MPI_ERR_NO_SPACE);
	OK(MPI_File_close(&full));
	FAILS(MPI_Register_datarep("mine", NULL, NULL, NULL, NULL), MPI_ERR_UNSUPPORTED_OPERATION);
	FAILS(MPI_File_read(MPI_FILE_NULL, b, 1, MPI_BYTE, &st), MPI_ERR_FILE);
	MPI_Errhandler_free(&h);
	OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	name = argv[1];
	modes();
	sizes();
	views();
	arrays();
	shared_pointer();
	nonblocking();
	atomic_mode();
	external();
	errors();
	/* One that is not closed does not keep the job from ending. */
	MPI_File left = opened(READ_WRITE | MPI_MODE_DELETE_ON_CLOSE);
	(void)left;
	MPI_Finalize();
	if (rank == 0)
		printf("files: no errors\n");
	return 0;
}
