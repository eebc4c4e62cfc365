/* mpibench is gompi-bench for an MPI library: the same operations, flags, rule
 * of timing and CSV, so that the two can be compared cell by cell.
 *
 *     mpicc -O2 -o mpibench mpibench.c
 *     mpirun -np 2 mpibench -impl openmpi -sizes 8,64K,4M latency allreduce
 *
 * The rule: a barrier before every timed iteration, and an iteration takes as
 * long as it takes the slowest rank; then as many back to back. It has to stay
 * what bench/internal/measure does, constant by constant. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpiops.h"

enum {
	WARM_UPS = 8,
	FEW_WARM_UPS = 3,
	LEAST_ITERS = 5,
	FEW_LEAST = 3,
	MOST_ITERS = 1 << 17,
	GROWTH = 8,
	LEAST_WINDOW = 2
};
#define BIG_BYTES (16L << 20)
#define WINDOW_BYTES (512L << 20)

static const char *impl = "mpi";
static double budget = 60e6; /* nanoseconds */
static int dirty;            /* every rank writes its vectors anew before each call */

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* shared_now is by the clock that all ranks of a host share. */
static i64 shared_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * (i64)1000000000 + t.tv_nsec;
}

/* ---- memory ---- */

static char *page_aligned(size_t bytes) {
	void *p = NULL;
	if (posix_memalign(&p, 4096, bytes ? bytes : 1))
		fail("no memory for", "the vectors");
	return p;
}

static void prepare(struct cell *k) {
	int send, recv;
	k->op->blocks(&send, &recv);
	memset(k->recv, 0xa5, recv * k->bytes);
	tile(k->send, send * k->bytes, pattern(rank));
}

/* bind makes k the cell of blocks of the given bytes, in memory for the largest.
 * In place, all is in recv_all, and reducescatter's result at its beginning. */
static void bind(struct cell *k, long bytes, char *send_all, char *recv_all) {
	int send, recv;
	k->op->blocks(&send, &recv);
	k->bytes = bytes, k->n = bytes / type_size;
	long w = WINDOW_BYTES / (bytes ? bytes : 1);
	k->window = w < LEAST_WINDOW ? LEAST_WINDOW : w > MOST_WINDOW ? MOST_WINDOW : w;
	k->send = k->send_arg = send_all, k->recv = k->recv_arg = recv_all;
	if (k->in_place && send && recv) {
		k->send = recv_all;
		k->send_arg = MPI_IN_PLACE;
		if (send < recv)
			k->send = recv_all + rank * bytes;
		if (recv < send && k->op->run == run_scatter) {
			k->recv = recv_all + rank * bytes;
			k->send_arg = recv_all, k->recv_arg = MPI_IN_PLACE;
		}
	}
	prepare(k);
}

/* ---- timing ---- */

static i64 agree(i64 x) {
	i64 most;
	MPI_Allreduce(&x, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static i64 iteration(struct cell *k) {
	if (dirty)
		prepare(k);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	k->op->run(k);
	double took = now() - start;
	if (k->op->skew)
		return shared_now();
	return k->op->timed() ? (i64)took : 0;
}

static int next_batch(int done, double spent) {
	if (spent >= budget)
		return 0;
	double more = done * (budget - spent) / spent;
	if (more > (double)GROWTH * done)
		more = (double)GROWTH * done;
	return more > MOST_ITERS - done ? MOST_ITERS - done : (int)more;
}

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

/* back_to_back returns the nanoseconds of as many calls without barriers, and 0 if
 * ranks write in between, as they would wait for each other's writing. */
static i64 back_to_back(struct cell *k, int calls) {
	if (dirty)
		return 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	for (int i = 0; i < calls; i++)
		k->op->run(k);
	return agree(k->op->timed() ? (i64)(now() - start) : 0);
}

static void measure(struct cell *k, i64 *times, i64 *slowest, i64 *first, int check) {
	if (check) {
		k->op->run(k);
		int wrong = k->op->right && !k->op->right(k);
		if (wrong)
			fprintf(stderr, "mpibench: %s of %ld bytes: rank %d received something wrong\n", k->op->name, k->bytes, rank);
		if (agree(wrong))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	int big = k->bytes > BIG_BYTES;
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
	i64 b2b = back_to_back(k, done);
	MPI_Reduce(times, slowest, done, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (k->op->skew)
		MPI_Reduce(times, first, done, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
	if (rank != 0)
		return;
	for (int i = 0; k->op->skew && i < done; i++)
		slowest[i] -= first[i];
	qsort(slowest, done, sizeof *slowest, ascending);
	double per = 1e3 * (k->op->windowed ? k->window : k->op->trips);
	double median = quantile(slowest, done, 0.5) / per;
	double alg = median > 0 ? k->bytes * k->op->volume() / median / 1e3 : 0;
	printf("%s,%s%s%s,%d,%ld,%.3f,%.3f,%.3f,%d,%.3f,%.4f,%.4f\n", impl, k->op->name, k->in_place ? "_ip" : "", dirty ? "_dirty" : "", np, k->bytes,
	       median, slowest[0] / per, quantile(slowest, done, 0.99) / per, done, (double)b2b / done / per, alg, alg * k->op->bus());
	fflush(stdout);
}

/* ---- the command line ---- */

static long parse_size(const char *s) {
	char *end;
	long n = strtol(s, &end, 10);
	int shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : *end == 'G' || *end == 'g' ? 30 : 0;
	if (end == s || n < 0 || (end[shift > 0] != '\0'))
		fail("want a size, as 8, 64K or 1M, not", s);
	if ((n << shift) % type_size || (n << shift) / type_size > INT32_MAX)
		fail("want a size of whole elements, at most 2^31-1, not", s);
	return n << shift;
}

/* parse_budget reads a span of time as gompi-bench's -budget takes it, in s or ms. */
static double parse_budget(const char *s) {
	char *end;
	double x = strtod(s, &end);
	if (end == s || x < 0 || (strcmp(end, "ms") && strcmp(end, "s") && *end))
		fail("want a time for -budget, as 60ms or 0.5, not", s);
	return x * (*end == 'm' ? 1e6 : 1e9);
}

static void run_op(const struct op *op, const char *list, int in_place, int check, i64 *times, i64 *slowest, i64 *first) {
	static long sizes[256];
	int count = 0, send, recv;
	long most = 0;
	char *copy = strdup(op->no_data ? "0" : list), *rest = copy, *s;
	while ((s = strsep(&rest, ",")) && count < 256) {
		sizes[count] = parse_size(s);
		most = sizes[count] > most ? sizes[count] : most;
		count++;
	}
	free(copy);
	struct cell k = {.op = op, .in_place = in_place && op->in_place};
	if (np < op->ranks)
		fail("too few ranks for", op->name);
	op->blocks(&send, &recv);
	int widest = send > recv ? send : recv;
	char *send_all = page_aligned(send * most);
	char *recv_all = page_aligned((k.in_place ? widest : recv) * most);
	for (int i = 0; i < count; i++) {
		bind(&k, sizes[i], send_all, recv_all);
		measure(&k, times, slowest, first, check);
	}
	free(send_all), free(recv_all);
}

int main(int argc, char **argv) {
	static const struct option flags[] = {
		{"impl", required_argument, NULL, 'i'}, {"sizes", required_argument, NULL, 's'},
		{"type", required_argument, NULL, 't'}, {"redop", required_argument, NULL, 'r'},
		{"format", required_argument, NULL, 'f'}, {"inplace", no_argument, NULL, 'p'},
		{"check", optional_argument, NULL, 'c'}, {"dirty", no_argument, NULL, 'd'},
		{"budget", required_argument, NULL, 'b'}, {0},
	};
	const char *sizes = "8,64,1K,16K,64K,256K,1M,4M";
	int in_place = 0, check = 1, f;
	opterr = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &np);
	while ((f = getopt_long_only(argc, argv, "", flags, NULL)) != -1) {
		switch (f) {
		case 'i': impl = optarg; break;
		case 's': sizes = optarg; break;
		case 't': type_name = optarg; break;
		case 'r': redop_name = optarg; break;
		case 'p': in_place = 1; break;
		case 'd': dirty = 1; break;
		case 'b': budget = parse_budget(optarg); break;
		case 'c': check = !optarg || strcmp(optarg, "false"); break;
		case 'f':
			if (strcmp(optarg, "csv"))
				fail("want csv for -format, not", optarg);
			break;
		default: fail("want -impl, -sizes, -type, -redop, -format, -inplace, -dirty, -budget or -check, not", argv[optind - 1]);
		}
	}
	set_types();
	set_patterns();
	i64 *times = malloc(MOST_ITERS * sizeof *times), *slowest = malloc(MOST_ITERS * sizeof *slowest);
	i64 *first = malloc(MOST_ITERS * sizeof *first);
	if (rank == 0)
		puts("impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps");
	for (; optind < argc; optind++) {
		int i;
		for (i = 0; i < OPS && strcmp(ops[i].name, argv[optind]); i++)
			;
		if (i == OPS)
			fail("unknown operation", argv[optind]);
		run_op(&ops[i], sizes, in_place, check, times, slowest, first);
	}
	MPI_Finalize();
	return 0;
}
