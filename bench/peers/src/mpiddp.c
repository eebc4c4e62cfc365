/* mpiddp is the communication of data-parallel training for an MPI library: one
 * MPI_Iallreduce for each bucket of gradients, in place, then a wait for all.
 * Nothing is computed. It has gompi-bench's flags, rule of timing and CSV, so that
 * the two can be compared cell by cell:
 *
 *     mpicc -O2 -o mpiddp mpiddp.c
 *     mpirun -np 2 mpiddp -impl openmpi -models FILE ddp-resnet50
 *
 * A line "buckets NAME LENGTH..." of FILE has the length of each bucket of a model in
 * float32. With -blocking each bucket is an MPI_Allreduce. The rule is in rule.h. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>

#include "rule.h"

enum { MOST_BUCKETS = 512 };

/* A cell is a model. */
struct cell {
	char *name;
	int buckets, lengths[MOST_BUCKETS];
	long n; /* all lengths together */
	float *grads;
};

static int rank, np, blocking;

static void fail(const char *what, const char *value) {
	if (rank == 0)
		fprintf(stderr, "mpiddp: %s \"%s\"\n", what, value);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

/* ---- the calls ---- */

static void step(struct cell *k) {
	static MPI_Request requests[MOST_BUCKETS];
	float *at = k->grads;
	for (int i = 0; i < k->buckets; at += k->lengths[i++])
		if (blocking)
			MPI_Allreduce(MPI_IN_PLACE, at, k->lengths[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		else
			MPI_Iallreduce(MPI_IN_PLACE, at, k->lengths[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
	if (!blocking)
		MPI_Waitall(k->buckets, requests, MPI_STATUSES_IGNORE);
}

static i64 agree(i64 x) {
	i64 most;
	MPI_Allreduce(&x, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static i64 iteration(struct cell *k) {
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	step(k);
	return (i64)(now() - start);
}

static i64 back_to_back(struct cell *k, int calls) {
	MPI_Barrier(MPI_COMM_WORLD);
	double start = now();
	for (int i = 0; i < calls; i++)
		step(k);
	return agree((i64)(now() - start));
}

/* check makes a step of small whole numbers, whose sums no order of adding rounds. */
static void check(struct cell *k) {
	int wrong = 0;
	for (long i = 0; i < k->n; i++)
		k->grads[i] = rank + i % PERIOD;
	step(k);
	for (long i = 0; i < k->n; i++)
		wrong |= k->grads[i] != np * (np - 1) / 2 + np * (i % PERIOD);
	if (wrong)
		fprintf(stderr, "mpiddp: %s: rank %d received wrong data\n", k->name, rank);
	if (agree(wrong))
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void measure(struct cell *k, i64 *times, i64 *slowest) {
	k->grads = (float *)page_aligned(k->n * sizeof *k->grads);
	check(k);
	memset(k->grads, 0, k->n * sizeof *k->grads); /* sums of sums would not stay finite */
	int done = sample(k, k->n * sizeof *k->grads, times);
	i64 b2b = back_to_back(k, done);
	MPI_Reduce(times, slowest, done, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		print_row((struct row){
			.op = k->name, .how = "", .np = np, .bytes = k->n * sizeof *k->grads, .b2b = b2b,
			.messages = 1, .volume = 1, .bus = 2.0 * (np - 1) / np,
		}, slowest, done);
	free(k->grads);
}

/* ---- the command line ---- */

/* find_model reads the buckets of a model from a file. */
static void find_model(const char *file, const char *name, struct cell *k) {
	FILE *f = fopen(file, "r");
	char *line = NULL, *word;
	size_t room = 0;
	if (!f)
		fail("cannot read -models", file);
	memset(k, 0, sizeof *k);
	while (!k->name && getline(&line, &room, f) > 0) {
		char *rest = line;
		if (strcmp(strsep(&rest, " \n"), "buckets") || strcmp(strsep(&rest, " \n"), name))
			continue;
		k->name = strdup(name);
		while ((word = strsep(&rest, " \n")))
			if (*word) {
				if (k->buckets == MOST_BUCKETS || atoi(word) <= 0)
					fail("want at most 512 lengths, 1 or more, not", word);
				k->lengths[k->buckets++] = atoi(word);
				k->n += atoi(word);
			}
	}
	fclose(f), free(line);
	if (!k->name)
		fail("no such line in -models:", name);
}

int main(int argc, char **argv) {
	static const struct option flags[] = {
		{"impl", required_argument, NULL, 'i'}, {"models", required_argument, NULL, 'k'},
		{"format", required_argument, NULL, 'f'}, {"budget", required_argument, NULL, 'b'},
		{"blocking", no_argument, NULL, 'w'}, {0},
	};
	const char *models = NULL;
	static struct cell k;
	int f;
	opterr = 0, impl = "mpi";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &np);
	while ((f = getopt_long_only(argc, argv, "", flags, NULL)) != -1) {
		switch (f) {
		case 'i': impl = optarg; break;
		case 'k': models = optarg; break;
		case 'b': budget = parse_budget(optarg); break;
		case 'w': blocking = 1; break;
		case 'f':
			if (strcmp(optarg, "csv"))
				fail("want csv for -format, not", optarg);
			break;
		default: fail("want -impl, -models, -format, -budget or -blocking, not", argv[optind - 1]);
		}
	}
	if (!models)
		fail("want a file:", "-models");
	i64 *times = malloc(MOST_ITERS * sizeof *times), *slowest = malloc(MOST_ITERS * sizeof *slowest);
	if (rank == 0)
		puts(COLUMNS);
	for (; optind < argc; optind++) {
		find_model(models, argv[optind], &k);
		measure(&k, times, slowest);
	}
	MPI_Finalize();
	return 0;
}
