/* What mpibench can measure: element types, the inputs of all ranks, the calls,
 * what they must deliver, and the table of operations at the end. Included by
 * mpibench.c alone, after rule.h. */
#include <mpi.h>

enum {
	DATA_TAG = 1,
	ACK_TAG = 2
};

/* A cell is an operation at one size. */
struct op;
struct cell {
	const struct op *op;
	int n;               /* elements of a block */
	long bytes;          /* of a block */
	int window;
	int in_place;
	char *send, *recv;   /* what prepare and check see */
	void *send_arg, *recv_arg; /* what the call gets, MPI_IN_PLACE too */
};

struct op {
	const char *name;
	int ranks, no_data, in_place;
	void (*blocks)(int *send, int *recv);
	void (*run)(struct cell *);
	int (*right)(struct cell *); /* 1 if the call did what it should */
	int (*timed)(void);
	int windowed, trips;
	double (*volume)(void), (*bus)(void);
	double before; /* nanoseconds of computing before each call; such calls do not go back to back */
	void (*begin)(struct cell *), (*end)(struct cell *); /* before and after all calls of a cell */
};

static int rank, np;
static const char *type_name = "float32", *redop_name = "sum";
static MPI_Datatype type = MPI_FLOAT;
static int type_size = 4;
static MPI_Op redop;
static MPI_Request requests[MOST_WINDOW];
static char *patterns;  /* np times PERIOD elements: the inputs of all ranks */

static void fail(const char *what, const char *value) {
	if (rank == 0)
		fprintf(stderr, "mpibench: %s \"%s\"\n", what, value);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

/* ---- element types and inputs ---- */

static const struct {
	const char *name;
	MPI_Datatype type;
	int size;
	char kind; /* f: floating, i: whole */
} types[] = {
	{"float32", MPI_FLOAT, 4, 'f'}, {"float64", MPI_DOUBLE, 8, 'f'},
	{"int8", MPI_INT8_T, 1, 'i'}, {"int16", MPI_INT16_T, 2, 'i'},
	{"int32", MPI_INT32_T, 4, 'i'}, {"int64", MPI_INT64_T, 8, 'i'},
	{"uint8", MPI_UINT8_T, 1, 'i'}, {"uint16", MPI_UINT16_T, 2, 'i'},
	{"uint32", MPI_UINT32_T, 4, 'i'}, {"uint64", MPI_UINT64_T, 8, 'i'},
};
enum { TYPES = sizeof types / sizeof *types };
static char type_kind = 'f';

static void set_types(void) {
	int i;
	for (i = 0; i < TYPES && strcmp(types[i].name, type_name); i++)
		;
	if (i == TYPES)
		fail("want float32, float64, int8..int64 or uint8..uint64 for -type, not", type_name);
	type = types[i].type, type_size = types[i].size, type_kind = types[i].kind;
	redop = !strcmp(redop_name, "sum")    ? MPI_SUM
	        : !strcmp(redop_name, "prod") ? MPI_PROD
	        : !strcmp(redop_name, "min")  ? MPI_MIN
	        : !strcmp(redop_name, "max")  ? MPI_MAX
	                                      : MPI_OP_NULL;
	if (redop == MPI_OP_NULL)
		fail("want sum, prod, min or max for -redop, not", redop_name);
}

static void put(char *at, double x) {
	if (type_kind == 'f' && type_size == 4) {
		float f = x;
		memcpy(at, &f, 4);
	} else if (type_kind == 'f') {
		memcpy(at, &x, 8);
	} else {
		i64 v = x; /* little endian: the low bytes come first */
		memcpy(at, &v, type_size);
	}
}

/* value is the number at index i of rank r's pattern: small and whole, so that
 * no order of adding rounds; for products a power of two. */
static int value(int r, int i) {
	uint32_t x = (uint32_t)(i + 1) * 2654435761u ^ (uint32_t)(r + 1) * 2246822519u;
	x ^= x >> 15;
	x *= 2246822519u;
	return (x >> 24) % (redop == MPI_PROD ? 2 : 4) + 1;
}

static char *pattern(int r) { return patterns + (size_t)r * PERIOD * type_size; }

static void set_patterns(void) {
	patterns = malloc((size_t)np * PERIOD * type_size);
	for (int r = 0; r < np; r++)
		for (int i = 0; i < PERIOD; i++)
			put(pattern(r) + (size_t)i * type_size, value(r, i));
}

static void tile(char *to, long bytes, const char *from) {
	long period = (long)PERIOD * type_size;
	for (long at = 0; at < bytes; at += period)
		memcpy(to + at, from, bytes - at < period ? bytes - at : period);
}

/* holds reports whether got is from, from element phase on, again and again. */
static int holds(const char *got, long bytes, const char *from, long phase) {
	long at = phase % PERIOD * type_size, period = (long)PERIOD * type_size;
	for (long done = 0, n; done < bytes; done += n, at = 0) {
		n = bytes - done < period - at ? bytes - done : period - at;
		if (memcmp(got + done, from + at, n))
			return 0;
	}
	return 1;
}

/* holds_reduced compares with the reduction over the first ranks. */
static int holds_reduced(const struct cell *k, int ranks, long phase) {
	char *want = malloc((size_t)PERIOD * type_size);
	for (int i = 0; i < PERIOD; i++) {
		double x = value(0, i);
		for (int r = 1; r < ranks; r++) {
			double y = value(r, i);
			x = redop == MPI_SUM ? x + y : redop == MPI_PROD ? x * y : redop == MPI_MIN ? (x < y ? x : y) : (x > y ? x : y);
		}
		put(want + (size_t)i * type_size, x);
	}
	int ok = holds(k->recv, k->bytes, want, phase);
	free(want);
	return ok;
}

/* ---- messages ---- */

static int peer_of(void) { return rank > 1 ? -1 : 1 - rank; }

static void run_latency(struct cell *k) {
	if (rank == 0) {
		MPI_Send(k->send, k->n, type, 1, DATA_TAG, MPI_COMM_WORLD);
		MPI_Recv(k->recv, k->n, type, 1, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(k->recv, k->n, type, 0, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(k->send, k->n, type, 0, DATA_TAG, MPI_COMM_WORLD);
	}
}

static void run_bw(struct cell *k) {
	int peer = peer_of(), w = k->window;
	if (peer < 0)
		return;
	if (rank < peer) {
		for (int i = 0; i < w; i++)
			MPI_Isend(k->send, k->n, type, peer, DATA_TAG, MPI_COMM_WORLD, &requests[i]);
		MPI_Waitall(w, requests, MPI_STATUSES_IGNORE);
		MPI_Recv(NULL, 0, MPI_BYTE, peer, ACK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	for (int i = 0; i < w; i++)
		MPI_Irecv(k->recv, k->n, type, peer, DATA_TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(w, requests, MPI_STATUSES_IGNORE);
	MPI_Send(NULL, 0, MPI_BYTE, peer, ACK_TAG, MPI_COMM_WORLD);
}

/* ---- vector ---- */

/* Every 8 bytes of the memory are followed by 8 others. A cell makes its type and its memory at its
 * first call, which is not timed. */
static MPI_Datatype spread_type = MPI_DATATYPE_NULL;
static char *spread_send, *spread_recv;
static long spread_bytes = -1;

static void spread(char *to, const char *from, long bytes) {
	for (long at = 0; at < bytes; at += 8)
		memcpy(to + 2 * at, from + at, bytes - at < 8 ? bytes - at : 8);
}

static void set_spread(const struct cell *k) {
	if (k->bytes == spread_bytes)
		return;
	if (k->bytes > 8 && k->bytes % 8)
		fail("vector: want sizes that are multiples of 8 bytes, with", type_name);
	if (spread_type != MPI_DATATYPE_NULL)
		MPI_Type_free(&spread_type);
	free(spread_send), free(spread_recv);
	int block = (k->bytes < 8 && k->bytes > 0 ? k->bytes : 8) / type_size;
	MPI_Type_vector(k->n / block, block, 16 / type_size, type, &spread_type);
	MPI_Type_commit(&spread_type);
	spread_send = calloc(2 * k->bytes + 1, 1), spread_recv = calloc(2 * k->bytes + 1, 1);
	if (!spread_send || !spread_recv)
		fail("no memory for", "the vectors");
	spread(spread_send, k->send, k->bytes);
	spread_bytes = k->bytes;
}

static void run_vector(struct cell *k) {
	if (rank > 1)
		return;
	set_spread(k);
	if (rank == 0) {
		MPI_Send(spread_send, 1, spread_type, 1, DATA_TAG, MPI_COMM_WORLD);
		MPI_Recv(spread_recv, 1, spread_type, 1, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(spread_recv, 1, spread_type, 0, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(spread_send, 1, spread_type, 0, DATA_TAG, MPI_COMM_WORLD);
	}
}

static void run_sendrecv(struct cell *k) {
	int peer = peer_of();
	if (peer >= 0)
		MPI_Sendrecv(k->send, k->n, type, peer, DATA_TAG, k->recv, k->n, type, peer, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- halo ---- */

#define HALO_COMPUTES 50e3 /* nanoseconds */
static int halo_steps;
static volatile double halo_work;

/* compute does some arithmetic, each step of which needs the one before. */
static void compute(int steps) {
	double x = halo_work;
	for (int i = 0; i < steps; i++)
		x = x * 0.9999999 + 1e-7;
	halo_work = x;
}

/* calibrate finds how many steps take HALO_COMPUTES where nothing interrupts them. */
static void calibrate(struct cell *k) {
	(void)k;
	enum { SOME = 10000 };
	double fastest = 1e9;
	for (int i = 0; i < 20; i++) {
		double start = now(), took;
		compute(SOME);
		took = now() - start;
		fastest = took < fastest ? took : fastest;
	}
	halo_steps = (int)(SOME * HALO_COMPUTES / (fastest > 1 ? fastest : 1));
}

static void run_halo(struct cell *k) {
	MPI_Request r;
	int peer = peer_of();
	if (peer < 0)
		return;
	compute(halo_steps);
	MPI_Irecv(k->recv, k->n, type, peer, DATA_TAG, MPI_COMM_WORLD, &r);
	MPI_Send(k->send, k->n, type, peer, DATA_TAG, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void run_irecv(struct cell *k) {
	MPI_Request r;

	if (rank > 1)
		return;
	if (rank == 0)
		MPI_Send(k->send, k->n, type, 1, DATA_TAG, MPI_COMM_WORLD);
	MPI_Irecv(k->recv, k->n, type, 1 - rank, DATA_TAG, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(k->send, k->n, type, 0, DATA_TAG, MPI_COMM_WORLD);
}

static void probe(int want) {
	int found = want;

	if (rank == 0)
		MPI_Iprobe(1, DATA_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	if (found != want)
		fail("MPI_Iprobe: want a message that was sent, and no other, in", want ? "iprobe_found" : "iprobe");
}

static void run_iprobe(struct cell *k) { (void)k, probe(0); }
static void run_iprobe_found(struct cell *k) { (void)k, probe(1); }

/* send_to_probe has an empty message arrive at rank 0, which recv_probed takes. */
static void send_to_probe(struct cell *k) {
	(void)k;
	if (rank == 0)
		MPI_Probe(1, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (rank == 1)
		MPI_Send(NULL, 0, MPI_BYTE, 0, DATA_TAG, MPI_COMM_WORLD);
}

static void recv_probed(struct cell *k) {
	(void)k;
	if (rank == 0)
		MPI_Recv(NULL, 0, MPI_BYTE, 1, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void run_iprobe_recv(struct cell *k) {
	int found = 0;

	if (rank > 1)
		return;
	if (rank == 0)
		MPI_Send(k->send, k->n, type, 1, DATA_TAG, MPI_COMM_WORLD);
	while (!found)
		MPI_Iprobe(1 - rank, DATA_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	MPI_Recv(k->recv, k->n, type, 1 - rank, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(k->send, k->n, type, 0, DATA_TAG, MPI_COMM_WORLD);
}

static void run_one_way(struct cell *k) {
	if (rank == 0)
		MPI_Send(k->send, k->n, type, 1, DATA_TAG, MPI_COMM_WORLD);
	else if (rank == 1)
		MPI_Recv(k->recv, k->n, type, 0, DATA_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- windows: rank 0 accesses memory of rank 1, which all have locked, and flushes ---- */

static MPI_Win win;
static char *part; /* this rank's memory */

static char *theirs; /* and that of rank 1, in a window of shared memory; NULL if it is not shared */

static long room_of(struct cell *k) { return k->bytes > 8 ? k->bytes : 8; }

static void begin_epoch(struct cell *k) {
	long room = room_of(k);

	memset(part, 0xa5, room);
	if (rank == 1 && k->op->blocks != NULL) {
		int send, recv;
		k->op->blocks(&send, &recv);
		if (send)
			memcpy(part, k->send, k->bytes);
	}
	MPI_Win_lock_all(0, win);
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void open_window(struct cell *k) {
	MPI_Win_allocate(room_of(k), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
	begin_epoch(k);
}

static void open_shared_window(struct cell *k) {
	MPI_Aint size;
	int unit;

	theirs = NULL;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (MPI_Win_allocate_shared(room_of(k), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win) == MPI_SUCCESS)
		MPI_Win_shared_query(win, 1, &size, &unit, &theirs);
	else
		MPI_Win_allocate(room_of(k), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	begin_epoch(k);
}

static void close_window(struct cell *k) {
	(void)k;
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

static void run_put(struct cell *k) {
	if (rank != 0)
		return;
	MPI_Put(k->send, k->n, type, 1, 0, k->n, type, win);
	MPI_Win_flush(1, win);
}

static void run_get(struct cell *k) {
	if (rank != 0)
		return;
	MPI_Get(k->recv, k->n, type, 1, 0, k->n, type, win);
	MPI_Win_flush(1, win);
}

/* what a put cannot be faster than: the program's own copy */
static void run_store(struct cell *k) {
	if (theirs == NULL) {
		run_put(k);
	} else if (rank == 0) {
		memcpy(theirs, k->send, k->bytes);
		MPI_Win_sync(win);
	}
}

static void run_fetch_and_op(struct cell *k) {
	static const i64 one = 1;
	static i64 old;

	(void)k;
	if (rank != 0)
		return;
	MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

/* ---- collectives ---- */

#define W MPI_COMM_WORLD
#ifdef ONECCL
#include "oneccl.h" /* instead of MPI's calls, as far as oneCCL has them */
#endif
static void run_barrier(struct cell *k) { (void)k, MPI_Barrier(W); }
static void run_bcast(struct cell *k) { MPI_Bcast(rank == 0 ? k->send : k->recv, k->n, type, 0, W); }
static void run_reduce(struct cell *k) { MPI_Reduce(k->send_arg, k->recv_arg, k->n, type, redop, 0, W); }
static void run_allreduce(struct cell *k) { MPI_Allreduce(k->send_arg, k->recv_arg, k->n, type, redop, W); }
static void run_iallreduce(struct cell *k) {
	MPI_Request r;

	MPI_Iallreduce(k->send_arg, k->recv_arg, k->n, type, redop, W, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}
static void run_allgather(struct cell *k) { MPI_Allgather(k->send_arg, k->n, type, k->recv_arg, k->n, type, W); }
static void run_reduce_scatter(struct cell *k) { MPI_Reduce_scatter_block(k->send_arg, k->recv_arg, k->n, type, redop, W); }
static void run_alltoall(struct cell *k) { MPI_Alltoall(k->send_arg, k->n, type, k->recv_arg, k->n, type, W); }
static void run_gather(struct cell *k) { MPI_Gather(k->send_arg, k->n, type, k->recv_arg, k->n, type, 0, W); }
static void run_scatter(struct cell *k) { MPI_Scatter(k->send_arg, k->n, type, k->recv_arg, k->n, type, 0, W); }
static void run_scan(struct cell *k) { MPI_Scan(k->send_arg, k->recv_arg, k->n, type, redop, W); }
#undef W
#ifdef ONECCL
#undef MPI_Barrier
#undef MPI_Bcast
#undef MPI_Reduce
#undef MPI_Allreduce
#undef MPI_Allgather
#undef MPI_Reduce_scatter_block
#undef MPI_Alltoall
#endif

/* ---- what they must have done ---- */

static int from_peer(struct cell *k) {
	int send, recv;
	k->op->blocks(&send, &recv);
	return recv == 0 || holds(k->recv, k->bytes, pattern(peer_of()), 0);
}
static int from_window(struct cell *k) {
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	return rank != 1 || holds(part, k->bytes, pattern(0), 0);
}
/* What has been received is brought together, and its place emptied for the next call. */
static int spread_from_peer(struct cell *k) {
	for (long at = 0; at < k->bytes && rank < 2; at += 8) {
		long n = k->bytes - at < 8 ? k->bytes - at : 8;
		memcpy(k->recv + at, spread_recv + 2 * at, n);
		memset(spread_recv + 2 * at, 0xa5, n);
	}
	return from_peer(k);
}
static int from_root(struct cell *k) { return rank == 0 || holds(k->recv, k->bytes, pattern(0), 0); }
static int reduced(struct cell *k) { return holds_reduced(k, np, 0); }
static int reduced_at_root(struct cell *k) { return rank != 0 || holds_reduced(k, np, 0); }
static int reduced_block(struct cell *k) { return holds_reduced(k, np, (long)rank * k->n); }
static int reduced_up_to(struct cell *k) { return holds_reduced(k, rank + 1, 0); }
static int from_each(struct cell *k, long phase) {
	for (int r = 0; r < np; r++)
		if (!holds(k->recv + r * k->bytes, k->bytes, pattern(r), phase))
			return 0;
	return 1;
}
static int gathered(struct cell *k) { return from_each(k, 0); }
static int gathered_at_root(struct cell *k) { return rank != 0 || from_each(k, 0); }
static int exchanged(struct cell *k) { return from_each(k, (long)rank * k->n); }
static int scattered(struct cell *k) { return holds(k->recv, k->bytes, pattern(0), (long)rank * k->n); }

/* ---- the table ---- */

static void none(int *s, int *r) { *s = *r = 0; }
static void one_one(int *s, int *r) { *s = *r = 1; }
static void first_two(int *s, int *r) { *s = *r = rank < 2; }
static void first_to_second(int *s, int *r) { *s = rank == 0, *r = rank == 1; }
static void second_to_first(int *s, int *r) { *s = rank == 1, *r = rank == 0; }
static void root_to_all(int *s, int *r) { *s = rank == 0, *r = rank != 0; }
static void all_to_root(int *s, int *r) { *s = 1, *r = rank == 0; }
static void gathering(int *s, int *r) { *s = 1, *r = np; }
static void scattering(int *s, int *r) { *s = np, *r = 1; }
static void exchanging(int *s, int *r) { *s = *r = np; }
static void gathering_at_root(int *s, int *r) { *s = 1, *r = rank == 0 ? np : 0; }
static void scattering_at_root(int *s, int *r) { *s = rank == 0 ? np : 0, *r = 1; }

static int everybody(void) { return 1; }
static int first(void) { return rank == 0; }

static double zero(void) { return 0; }
static double once(void) { return 1; }
static double per_rank(void) { return np; }
static double others(void) { return (np - 1.0) / np; }
static double twice_others(void) { return 2 * others(); }

static const struct op ops[] = {
	{"latency", 2, 0, 0, first_two, run_latency, from_peer, first, 0, 2, once, once, 0},
	{"irecv", 2, 0, 0, first_two, run_irecv, from_peer, first, 0, 2, once, once, 0},
	{"vector", 2, 0, 0, first_two, run_vector, spread_from_peer, first, 0, 2, once, once, 0},
	{"sendrecv", 2, 0, 0, first_two, run_sendrecv, from_peer, everybody, 0, 1, once, once, 0},
	{"iprobe", 2, 1, 0, none, run_iprobe, NULL, first, 0, 1, zero, zero, 0},
	{"iprobe_found", 2, 1, 0, none, run_iprobe_found, NULL, first, 0, 1, zero, zero, 0, send_to_probe, recv_probed},
	{"iprobe_recv", 2, 0, 0, first_two, run_iprobe_recv, from_peer, first, 0, 2, once, once, 0},
	{"gap1ms", 2, 0, 0, first_to_second, run_one_way, from_peer, first, 0, 1, once, once, 1e6},
	{"gap10ms", 2, 0, 0, first_to_second, run_one_way, from_peer, first, 0, 1, once, once, 1e7},
	{"halo", 2, 0, 0, first_two, run_halo, from_peer, first, 0, 1, once, once, 0, calibrate},
	{"bw", 2, 0, 0, first_to_second, run_bw, from_peer, first, 1, 1, once, once, 0},
	{"put", 2, 0, 0, first_to_second, run_put, from_window, first, 0, 1, once, once, 0, open_window, close_window},
	{"get", 2, 0, 0, second_to_first, run_get, from_peer, first, 0, 1, once, once, 0, open_window, close_window},
	{"store", 2, 0, 0, first_to_second, run_store, from_window, first, 0, 1, once, once, 0, open_shared_window, close_window},
	{"fetch_and_op", 2, 1, 0, none, run_fetch_and_op, NULL, first, 0, 1, zero, zero, 0, open_window, close_window},
	{"barrier", 1, 1, 0, none, run_barrier, NULL, everybody, 0, 1, zero, zero, 0},
	{"bcast", 1, 0, 0, root_to_all, run_bcast, from_root, everybody, 0, 1, once, once, 0},
	{"reduce", 1, 0, 1, all_to_root, run_reduce, reduced_at_root, everybody, 0, 1, once, once, 0},
	{"allreduce", 1, 0, 1, one_one, run_allreduce, reduced, everybody, 0, 1, once, twice_others, 0},
	{"iallreduce", 1, 0, 1, one_one, run_iallreduce, reduced, everybody, 0, 1, once, twice_others, 0},
	{"allgather", 1, 0, 1, gathering, run_allgather, gathered, everybody, 0, 1, per_rank, others, 0},
	{"reduce_scatter", 1, 0, 1, scattering, run_reduce_scatter, reduced_block, everybody, 0, 1, per_rank, others, 0},
	{"alltoall", 1, 0, 1, exchanging, run_alltoall, exchanged, everybody, 0, 1, per_rank, others, 0},
	{"gather", 1, 0, 1, gathering_at_root, run_gather, gathered_at_root, everybody, 0, 1, per_rank, others, 0},
	{"scatter", 1, 0, 1, scattering_at_root, run_scatter, scattered, everybody, 0, 1, per_rank, others, 0},
	{"scan", 1, 0, 1, one_one, run_scan, reduced_up_to, everybody, 0, 1, once, once, 0},
};
enum { OPS = sizeof ops / sizeof *ops };
