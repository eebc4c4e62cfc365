/* The rule of timing, the command line's numbers and the form of rows, as
 * mpibench.c and ucxbench.c have them: a barrier before every timed iteration,
 * and an iteration takes as long as it takes the slowest rank; then as many back
 * to back. It has to stay what bench/internal/measure does, constant by constant.
 * Who includes it has the functions that are only declared here. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t i64;

enum {
	WARM_UPS = 8,
	FEW_WARM_UPS = 3,
	LEAST_ITERS = 5,
	FEW_LEAST = 3,
	MOST_ITERS = 1 << 17,
	GROWTH = 8,
	LEAST_WINDOW = 2,
	MOST_WINDOW = 64,
	MOST_SIZES = 256,
	PERIOD = 1021 /* prime: a block in the wrong place does not look right */
};
#define BIG_BYTES (16L << 20)
#define WINDOW_BYTES (512L << 20)
#define COLUMNS \
	"impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"

struct cell;
static void fail(const char *what, const char *value); /* does not return */
static i64 iteration(struct cell *k); /* nanoseconds of one call, after a barrier */
static i64 agree(i64 x);              /* the largest x of all ranks */

static const char *impl;
static double budget = 60e6; /* nanoseconds */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* ---- memory ---- */

static char *page_aligned(size_t bytes) {
	void *p = NULL;
	if (posix_memalign(&p, 4096, bytes ? bytes : 1))
		fail("no memory for", "the vectors");
	return p;
}

static int window_of(long bytes) {
	long w = WINDOW_BYTES / (bytes ? bytes : 1);
	return w < LEAST_WINDOW ? LEAST_WINDOW : w > MOST_WINDOW ? MOST_WINDOW : w;
}

/* ---- timing ---- */

static int next_batch(int done, double spent) {
	if (spent >= budget)
		return 0;
	double more = done * (budget - spent) / spent;
	if (more > (double)GROWTH * done)
		more = (double)GROWTH * done;
	return more > MOST_ITERS - done ? MOST_ITERS - done : (int)more;
}

/* sample times iterations until the budget is spent and returns how many. */
static int sample(struct cell *k, long bytes, i64 *times) {
	int big = bytes > BIG_BYTES;
	for (int i = 0; i < (big ? FEW_WARM_UPS : WARM_UPS); i++)
		iteration(k);
	int done = 0, batch = big ? FEW_LEAST : LEAST_ITERS;
	for (double spent = 0; batch > 0; batch = next_batch(done, spent)) {
		double start = now();
		for (int i = 0; i < batch; i++)
			times[done++] = iteration(k);
		i64 took = agree((i64)(now() - start));
		spent += took > 0 ? took : 1;
	}
	return done;
}

/* ---- rows ---- */

static int ascending(const void *a, const void *b) {
	i64 x = *(const i64 *)a, y = *(const i64 *)b;
	return (x > y) - (x < y);
}

static i64 quantile(const i64 *sorted, int n, double q) {
	int i = (int)(q * n);
	if (i < q * n)
		i++;
	return sorted[i < 1 ? 0 : i - 1];
}

/* A row says what was measured beside the times of its iterations. */
struct row {
	const char *op, *how; /* how it was called */
	int np;
	long bytes;
	double messages; /* that a time is divided by */
	double b2b;      /* nanoseconds of all iterations back to back */
	double volume, bus;
};

/* print_row sorts the times of n iterations. */
static void print_row(struct row r, i64 *times, int n) {
	qsort(times, n, sizeof *times, ascending);
	double per = 1e3 * r.messages, median = quantile(times, n, 0.5) / per;
	double alg = median > 0 ? r.bytes * r.volume / median / 1e3 : 0;
	printf("%s,%s%s,%d,%ld,%.3f,%.3f,", impl, r.op, r.how, r.np, r.bytes, median, times[0] / per);
	printf("%.3f,%d,%.3f,", quantile(times, n, 0.99) / per, n, r.b2b / n / per);
	printf("%.4f,%.4f\n", alg, alg * r.bus);
	fflush(stdout);
}

/* ---- the command line ---- */

static long parse_size(const char *s) {
	char *end;
	long n = strtol(s, &end, 10);
	int shift = *end == 'K' || *end == 'k'   ? 10
	            : *end == 'M' || *end == 'm' ? 20
	            : *end == 'G' || *end == 'g' ? 30
	                                         : 0;
	if (end == s || n < 0 || (end[shift > 0] != '\0'))
		fail("want a size, as 8, 64K or 1M, not", s);
	return n << shift;
}

/* parse_sizes reads a list of up to MOST_SIZES and returns how many there are. */
static int parse_sizes(const char *list, long *sizes, long *most) {
	int count = 0;
	char *copy = strdup(list), *rest = copy, *s;
	for (*most = 0; (s = strsep(&rest, ",")) && count < MOST_SIZES; count++) {
		sizes[count] = parse_size(s);
		*most = sizes[count] > *most ? sizes[count] : *most;
	}
	free(copy);
	return count;
}

/* parse_budget reads a span of time as gompi-bench's -budget takes it, in s or ms. */
static double parse_budget(const char *s) {
	char *end;
	double x = strtod(s, &end);
	if (end == s || x < 0 || (strcmp(end, "ms") && strcmp(end, "s") && *end))
		fail("want a time for -budget, as 60ms or 0.5, not", s);
	return x * (*end == 'm' ? 1e6 : 1e9);
}
