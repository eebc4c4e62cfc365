/* mpibench is gompi-bench for an MPI library: the same operations, flags, rule
 * of timing and CSV, so that the two can be compared cell by cell.
 *
 *     mpicc -O2 -o mpibench mpibench.c
 *     mpirun -np 2 mpibench -impl openmpi -sizes 8,64K,4M latency allreduce
 *
 * The rule is in rule.h. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>

#include "rule.h"
#include "mpiops.h"

/* ---- memory ---- */

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
	k->window = window_of(bytes);
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
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	while (k->op->before && now() - start < k->op->before)
		;
	start = now();
	k->op->run(k);
	double took = now() - start;
	return k->op->timed() ? (i64)took : 0;
}

/* back_to_back returns the nanoseconds of as many calls without barriers, or 0. */
static i64 back_to_back(struct cell *k, int calls) {
	if (k->op->before)
		return 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	for (int i = 0; i < calls; i++)
		k->op->run(k);
	return agree(k->op->timed() ? (i64)(now() - start) : 0);
}

static void measure(struct cell *k, i64 *times, i64 *slowest, int check) {
	if (k->op->begin)
		k->op->begin(k);
	if (check) {
		k->op->run(k);
		int wrong = k->op->right && !k->op->right(k);
		if (wrong)
			fprintf(stderr, "mpibench: %s of %ld bytes: rank %d received wrong data\n", k->op->name, k->bytes, rank);
		if (agree(wrong))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	int done = sample(k, k->bytes, times);
	i64 b2b = back_to_back(k, done);
	if (k->op->end)
		k->op->end(k);
	MPI_Reduce(times, slowest, done, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank != 0)
		return;
	print_row((struct row){
		.op = k->op->name, .how = k->in_place ? "_ip" : "", .np = np, .bytes = k->bytes, .b2b = b2b,
		.messages = k->op->windowed ? k->window : k->op->trips,
		.volume = k->op->volume(), .bus = k->op->bus(),
	}, slowest, done);
}

/* ---- the command line ---- */

static void run_op(const struct op *op, const char *list, int in_place, int check, i64 *times, i64 *slowest) {
	static long sizes[MOST_SIZES];
	int send, recv;
	long most;
	int count = parse_sizes(op->no_data ? "0" : list, sizes, &most);
	for (int i = 0; i < count; i++)
		if (sizes[i] % type_size || sizes[i] / type_size > INT32_MAX)
			fail("want sizes of whole elements, at most 2^31-1, not", list);
	struct cell k = {.op = op, .in_place = in_place && op->in_place};
	if (np < op->ranks)
		fail("too few ranks for", op->name);
	op->blocks(&send, &recv);
	int widest = send > recv ? send : recv;
	char *send_all = page_aligned(send * most);
	char *recv_all = page_aligned((k.in_place ? widest : recv) * most);
	for (int i = 0; i < count; i++) {
		bind(&k, sizes[i], send_all, recv_all);
		measure(&k, times, slowest, check);
	}
	free(send_all), free(recv_all);
}

int main(int argc, char **argv) {
	static const struct option flags[] = {
		{"impl", required_argument, NULL, 'i'}, {"sizes", required_argument, NULL, 's'},
		{"type", required_argument, NULL, 't'}, {"redop", required_argument, NULL, 'r'},
		{"format", required_argument, NULL, 'f'}, {"inplace", no_argument, NULL, 'p'},
		{"check", optional_argument, NULL, 'c'},
		{"budget", required_argument, NULL, 'b'}, {0},
	};
	const char *sizes = "8,64,1K,16K,64K,256K,1M,4M";
	int in_place = 0, check = 1, f;
	opterr = 0, impl = "mpi";
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
		case 'b': budget = parse_budget(optarg); break;
		case 'c': check = !optarg || strcmp(optarg, "false"); break;
		case 'f':
			if (strcmp(optarg, "csv"))
				fail("want csv for -format, not", optarg);
			break;
		default: fail("want -impl, -sizes, -type, -redop, -format, -inplace, -budget or -check, not", argv[optind - 1]);
		}
	}
	set_types();
#ifdef ONECCL
	oneccl_start(rank, np, type_name, redop_name);
#endif
	set_patterns();
	i64 *times = malloc(MOST_ITERS * sizeof *times), *slowest = malloc(MOST_ITERS * sizeof *slowest);
	if (rank == 0)
		puts(COLUMNS);
	for (; optind < argc; optind++) {
		int i;
		for (i = 0; i < OPS && strcmp(ops[i].name, argv[optind]); i++)
			;
		if (i == OPS)
			fail("unknown operation", argv[optind]);
		run_op(&ops[i], sizes, in_place, check, times, slowest);
	}
	MPI_Finalize();
	return 0;
}
