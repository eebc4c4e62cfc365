/* Every collective, in place and not, with the results that any number of ranks must get. */
#include "check.h"

enum { N = 3, MOST = 16 };

static int me, size;

/* The sum over all ranks of what value(rank, i) is. */
static int64_t value(int rank, int i) { return 10 * rank + i + 1; }

static int64_t sum(int ranks, int i) {
	int64_t s = 0;

	for (int r = 0; r < ranks; r++)
		s += value(r, i);
	return s;
}

static void fill(int64_t *a, int n) {
	for (int i = 0; i < n; i++)
		a[i] = value(me, i);
}

static void barrier_and_bcast(void) {
	int64_t a[N];

	OK(gompi_barrier(GOMPI_WORLD));
	for (int root = 0; root < size; root++) {
		fill(a, N);
		OK(gompi_bcast(GOMPI_WORLD, a, N, GOMPI_INT64, root));
		for (int i = 0; i < N; i++)
			CHECK(a[i] == value(root, i), "root %d: a[%d] is %ld", root, i, a[i]);
	}
	OK(gompi_bcast(GOMPI_WORLD, NULL, 0, GOMPI_INT64, 0));
}

static void reduce(void) {
	int64_t a[N], b[N];
	int root = size - 1;

	fill(a, N);
	memset(b, 0, sizeof b);
	OK(gompi_reduce(GOMPI_WORLD, a, me == root ? b : NULL, N, GOMPI_INT64, GOMPI_SUM, root));
	for (int i = 0; i < N; i++)
		CHECK(b[i] == (me == root ? sum(size, i) : 0), "b[%d] is %ld", i, b[i]);
	OK(gompi_reduce(GOMPI_WORLD, a, a, N, GOMPI_INT64, GOMPI_SUM, root));
	for (int i = 0; i < N; i++)
		CHECK(a[i] == (me == root ? sum(size, i) : value(me, i)), "in place: a[%d] is %ld", i, a[i]);
}

static void allreduce(void) {
	int64_t a[N], b[N];

	fill(a, N);
	OK(gompi_allreduce(GOMPI_WORLD, a, b, N, GOMPI_INT64, GOMPI_SUM));
	OK(gompi_allreduce(GOMPI_WORLD, a, a, N, GOMPI_INT64, GOMPI_SUM));
	for (int i = 0; i < N; i++)
		CHECK(a[i] == sum(size, i) && b[i] == a[i], "a[%d] is %ld, b[%d] %ld", i, a[i], i, b[i]);
}

static void reduce_scatter(void) {
	int64_t a[MOST * N], b[N], counts[MOST];
	int first = 0;

	fill(a, size * N);
	OK(gompi_reduce_scatter_block(GOMPI_WORLD, a, b, N, GOMPI_INT64, GOMPI_SUM));
	for (int i = 0; i < N; i++)
		CHECK(b[i] == sum(size, me * N + i), "block: b[%d] is %ld", i, b[i]);
	OK(gompi_reduce_scatter_block(GOMPI_WORLD, a, a + me * N, N, GOMPI_INT64, GOMPI_SUM));
	CHECK(!memcmp(a + me * N, b, sizeof b), "in place: a[%d] is %ld", me * N, a[me * N]);

	for (int r = 0; r < size; r++)
		counts[r] = r % N;
	for (int r = 0; r < me; r++)
		first += r % N;
	fill(a, size * N);
	OK(gompi_reduce_scatter(GOMPI_WORLD, a, b, counts, GOMPI_INT64, GOMPI_SUM));
	for (int i = 0; i < me % N; i++)
		CHECK(b[i] == sum(size, first + i), "b[%d] is %ld", i, b[i]);
	OK(gompi_reduce_scatter(GOMPI_WORLD, a, a, counts, GOMPI_INT64, GOMPI_SUM));
	for (int i = 0; i < me % N; i++)
		CHECK(a[i] == sum(size, first + i), "in place: a[%d] is %ld", i, a[i]);
}

/* Whether block r of a is what rank r has filled in. */
static void check_blocks(const char *what, const int64_t *a) {
	for (int r = 0; r < size; r++)
		for (int i = 0; i < N; i++)
			CHECK(a[r * N + i] == value(r, i), "%s: block %d has %ld at %d", what, r, a[r * N + i], i);
}

static void allgather(void) {
	int64_t a[N], b[MOST * N], counts[MOST];

	fill(a, N);
	memset(b, 0, sizeof b);
	OK(gompi_allgather(GOMPI_WORLD, a, b, N, GOMPI_INT64));
	check_blocks("allgather", b);
	memset(b, 0, sizeof b);
	fill(b + me * N, N);
	OK(gompi_allgather(GOMPI_WORLD, b + me * N, b, N, GOMPI_INT64));
	check_blocks("allgather in place", b);

	for (int r = 0; r < size; r++)
		counts[r] = N;
	memset(b, 0, sizeof b);
	OK(gompi_allgatherv(GOMPI_WORLD, a, b, counts, GOMPI_INT64));
	check_blocks("allgatherv", b);
}

static void gather(void) {
	int64_t a[N], b[MOST * N];
	int root = size / 2;

	fill(a, N);
	memset(b, 0, sizeof b);
	OK(gompi_gather(GOMPI_WORLD, a, me == root ? b : NULL, N, GOMPI_INT64, root));
	if (me == root)
		check_blocks("gather", b);
	memset(b, 0, sizeof b);
	fill(b + me * N, N);
	OK(gompi_gather(GOMPI_WORLD, b + me * N, b, N, GOMPI_INT64, root));
	if (me == root)
		check_blocks("gather in place", b);
}

static void scatter(void) {
	int64_t a[MOST * N], b[N];
	int root = size / 2;

	for (int r = 0; r < size; r++)
		for (int i = 0; i < N; i++)
			a[r * N + i] = value(r, i);
	memset(b, 0, sizeof b);
	OK(gompi_scatter(GOMPI_WORLD, me == root ? a : NULL, b, N, GOMPI_INT64, root));
	for (int i = 0; i < N; i++)
		CHECK(b[i] == value(me, i), "scatter: b[%d] is %ld", i, b[i]);
	OK(gompi_scatter(GOMPI_WORLD, a, me == root ? a + me * N : b, N, GOMPI_INT64, root));
}

/* Rank r gets r % 2 + 1 elements from each rank. */
static void alltoall(void) {
	int64_t a[MOST * N], b[MOST * N], sends[MOST], recvs[MOST], *block = a;
	int mine = me % 2 + 1;

	for (int r = 0; r < size; r++) {
		sends[r] = r % 2 + 1;
		recvs[r] = mine;
		for (int i = 0; i < sends[r]; i++)
			*block++ = 100 * r + value(me, i);
	}
	memset(b, 0, sizeof b);
	OK(gompi_alltoallv(GOMPI_WORLD, a, sends, b, recvs, GOMPI_INT64));
	for (int r = 0; r < size; r++)
		for (int i = 0; i < mine; i++)
			CHECK(b[r * mine + i] == 100 * me + value(r, i), "alltoallv: block %d has %ld", r, b[r * mine + i]);
}

/* The sum of 1 and 2 over all ranks, as each type of numbers has them. */
#define SUMS(ctype, type) \
	do { \
		ctype x[2] = {1, 2}; \
		OK(gompi_allreduce(GOMPI_WORLD, x, x, 2, type, GOMPI_SUM)); \
		CHECK(x[0] == (ctype)size && x[1] == (ctype)(2 * size), "of " #ctype); \
	} while (0)

static void types(void) {
	const uint16_t half[] = {0, 0x3c00, 0x4000, 0, 0x4400}, brain[] = {0, 0x3f80, 0x4000, 0, 0x4080};
	uint16_t x;

	SUMS(int8_t, GOMPI_INT8);
	SUMS(int16_t, GOMPI_INT16);
	SUMS(int32_t, GOMPI_INT32);
	SUMS(int64_t, GOMPI_INT64);
	SUMS(uint8_t, GOMPI_UINT8);
	SUMS(uint16_t, GOMPI_UINT16);
	SUMS(uint32_t, GOMPI_UINT32);
	SUMS(uint64_t, GOMPI_UINT64);
	SUMS(float, GOMPI_FLOAT32);
	SUMS(double, GOMPI_FLOAT64);
	SUMS(float _Complex, GOMPI_COMPLEX64);
	SUMS(double _Complex, GOMPI_COMPLEX128);
	x = half[1];
	OK(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_FLOAT16, GOMPI_SUM));
	CHECK(x == half[size], "of float16: %x", x);
	x = brain[1];
	OK(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_BFLOAT16, GOMPI_SUM));
	CHECK(x == brain[size], "of bfloat16: %x", x);
}

/* The result of an operator on 6 at rank 0 and 3 on all others. */
static int64_t result(gompi_op op) {
	int64_t x = me ? 3 : 6;

	OK(gompi_allreduce(GOMPI_WORLD, &x, &x, 1, GOMPI_INT64, op));
	return x;
}

static void operators(void) {
	int64_t prod = 6, sums = 6, bxor = 6;
	double avg = me ? 3 : 6;

	for (int r = 1; r < size; r++) {
		prod *= 3;
		sums += 3;
		bxor ^= 3;
	}
	CHECK(result(GOMPI_SUM) == sums, "sum");
	CHECK(result(GOMPI_PROD) == prod, "prod");
	OK(gompi_allreduce(GOMPI_WORLD, &avg, &avg, 1, GOMPI_FLOAT64, GOMPI_AVG));
	CHECK(avg == (double)sums / size, "avg");
	CHECK(result(GOMPI_MIN) == (size > 1 ? 3 : 6), "min");
	CHECK(result(GOMPI_MAX) == 6, "max");
	CHECK(result(GOMPI_BAND) == (size > 1 ? 2 : 6), "band");
	CHECK(result(GOMPI_BOR) == (size > 1 ? 7 : 6), "bor");
	CHECK(result(GOMPI_BXOR) == bxor, "bxor");
}

/* Long vectors. Odd ranks have theirs in memory of gompi_alloc_local, of a length of its own. */
static void vectors(void) {
	enum { LONG = 1 << 16 };
	void *memory = NULL;
	gompi_comm c;
	int64_t *a;

	OK(gompi_dup(GOMPI_WORLD, &c));
	OK(gompi_share(c));
	if (me % 2)
		OK(gompi_alloc_local((LONG + me) * sizeof *a, &memory));
	a = memory ? memory : calloc(LONG, sizeof *a);
	CHECK(a[0] == 0 && a[LONG - 1] == 0, "memory of gompi_alloc_local is not zero");
	for (int i = 0; i < LONG; i++)
		a[i] = i + me;
	OK(gompi_allreduce(c, a, a, LONG, GOMPI_INT64, GOMPI_SUM));
	for (int i = 0; i < LONG; i++)
		CHECK(a[i] == (int64_t)i * size + size * (size - 1) / 2, "a[%d] is %ld", i, (long)a[i]);
	if (memory)
		OK(gompi_dealloc_local(memory));
	else
		free(a);
	OK(gompi_free(c));
}

/* The ranks from 0 to the last but one, from the highest to 0: the last one makes no call. */
static void groups(void) {
	int members[64], n = size > 1 ? size - 1 : 1;
	int32_t x = me;
	gompi_comm c;

	for (int i = 0; i < n; i++)
		members[i] = n - 1 - i;
	if (me >= n)
		return;
	OK(gompi_create_group(GOMPI_WORLD, members, (size_t)n, 3, &c));
	CHECK(rank_of(c) == n - 1 - me && size_of(c) == n, "rank %d of %d", rank_of(c), size_of(c));
	OK(gompi_allreduce(c, &x, &x, 1, GOMPI_INT32, GOMPI_SUM));
	CHECK(x == n * (n - 1) / 2, "the sum is %d", x);
	OK(gompi_free(c));
}

static void all(void) {
	barrier_and_bcast();
	reduce();
	allreduce();
	reduce_scatter();
	allgather();
	gather();
	scatter();
	alltoall();
	types();
	operators();
	vectors();
	groups();
}

int main(void) {
	OK(gompi_init(0));
	me = rank_of(GOMPI_WORLD);
	size = size_of(GOMPI_WORLD);
	all();
	gompi_set_background(1);
	all();
	OK(gompi_finalize());
	printf("rank %d of %d done\n", me, size);
	return 0;
}
