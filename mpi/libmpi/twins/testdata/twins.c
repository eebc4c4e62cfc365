/* Runs functions of C on memory that package twins sends, and sends it back. short.c is part of this file, for its
 * static functions; collectives.c, windows.c and counted.c are as in a library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "counters.h"
#include "locks.h"
#include "recorder.h"
#include "reduce.h"
#include "rings.h"
#include "short.c"
#include "steps.h"

enum { ARGUMENTS = 6 };

struct request {
	char name[32];
	uint64_t args[ARGUMENTS];
	uint64_t length;
};

/* ---- What has no brother: arguments and results ---- */

static uint64_t of_header(const uint64_t *a, void *memory)
{
	struct gompi_header h = header_encode((uint32_t)a[0], (int32_t)a[1], a[2], a[3]);
	memcpy(memory, &h, sizeof h);
	return 0;
}

static uint64_t of_cost(const uint64_t *a, void *memory)
{
	(void)memory;
	return (uint64_t)cost(a[0]);
}

static uint64_t of_digest(const uint64_t *a, void *memory)
{
	(void)memory;
	return encoded_call_digest(a[0], &a[1]);
}

static uint64_t of_arrive(const uint64_t *a, void *memory) { return control_arrive(memory, (int)a[0]); }
static uint64_t of_begin(const uint64_t *a, void *memory) { return control_begin(memory, (int)a[0]), 0; }
static uint64_t of_end(const uint64_t *a, void *memory) { return control_end(memory, (int)a[0]), 0; }

static uint64_t of_enter(const uint64_t *a, void *memory) { return counters_enter(memory, (int64_t)a[0]), 0; }

static uint64_t of_exit(const uint64_t *a, void *memory)
{
	return counters_exit(memory, (int64_t)a[0], (int64_t)a[1], (int64_t)a[2]), 0;
}

/* The memory is a bounce buffer. It returns the place, and leaves what all must have read. */
static uint64_t of_lay(const uint64_t *a, void *memory)
{
	struct gompi_team t = {.rings = {memory, memory}};
	uint64_t after = team_lay(&t, a[0], a[1], ((const struct gompi_bounce *)memory)->turn);
	memcpy((struct gompi_bounce *)memory + 1, &after, sizeof after);
	return t.place | t.exchanged << 32;
}

/* The memory is the recorder's ring, and its next ticket. */
static uint64_t of_record(const uint64_t *a, void *memory)
{
	struct gompi_record *ring = memory;
	struct gompi_team t = {.recorder = ring, .next = (uint64_t *)(ring + GOMPI_RECORDED), .comm = a[0], .call = {a[1], a[2]}, .seq = a[4]};
	return recorder_begin(&t, (int64_t)a[3]), 0;
}

/* The memory is the result and the two operands, of a[2] elements and a[3] bytes each. */
static uint64_t of_reduce(const uint64_t *a, void *memory)
{
	uint8_t *to = memory;
	return mem_reduce((int)a[0], (int)a[1], to, to + a[3], to + 2 * a[3], (int64_t)a[2]), 0;
}

/* The two sides of a pair of rings. */
struct sides {
	struct gompi_writer out[2];
	struct gompi_reader in[2];
	struct gompi_cells cells[2];
};

/* lay_out has side s's ends point to the rings, which lie behind both sides and are each a[1] bytes long with the
 * cells at the end. */
static void lay_out(struct sides *p, int s, uint64_t length)
{
	uint8_t *to = (uint8_t *)(p + 1) + (uint64_t)s * length, *from = (uint8_t *)(p + 1) + (uint64_t)!s * length;
	struct gompi_cells *c = p->out[s].cells = &p->cells[s];
	c->mem[0] = to + length - c->most * GOMPI_RING_CELL_SIZE;
	c->mem[1] = from + length - c->most * GOMPI_RING_CELL_SIZE;
	p->out[s].ring.control = (struct gompi_control *)to;
	p->out[s].ring.mem = to + GOMPI_RING_CONTROL_SIZE;
	p->in[s].ring.control = (struct gompi_control *)from;
	p->in[s].ring.mem = from + GOMPI_RING_CONTROL_SIZE;
	p->in[s].here = ring_word(&p->in[s].ring, p->in[s].pos);
}

static void fold(struct sides *p, int s)
{
	p->out[s].ring.control = p->in[s].ring.control = NULL;
	p->out[s].ring.mem = p->in[s].ring.mem = NULL;
	p->in[s].here = NULL;
	p->out[s].cells = NULL;
	p->cells[s].mem[0] = p->cells[s].mem[1] = NULL;
}

static uint64_t of_send(const uint64_t *a, void *memory)
{
	static uint8_t body[1 << 16];
	struct sides *p = memory;
	struct runs m = {body, (int64_t)a[2], (int64_t)a[2], 0};
	struct gompi_header h = header_encode(0, (int32_t)a[3], 0, a[2]);
	memset(body, (int)a[3], a[2]);
	lay_out(p, (int)a[0], a[1]);
	bool sent = writer_begin(&p->out[a[0]], &h, &m);
	fold(p, (int)a[0]);
	return sent;
}

static uint64_t of_receive(const uint64_t *a, void *memory)
{
	struct sides *p = memory;
	struct record f;
	lay_out(p, (int)a[0], a[1]);
	enum look seen = reader_next(&p->in[a[0]], p->out[a[0]].cells, &f);
	if (seen == FRAME) {
		reader_fetch(&p->in[a[0]], &f);
		reader_done(&p->in[a[0]], &p->out[a[0]], &f);
	}
	fold(p, (int)a[0]);
	return seen;
}

/* The memory is a run of all bytes, and runs of a[0] bytes, a[1] apart, a[2] bytes in all, from byte a[3] on. */
static uint64_t of_pack(const uint64_t *a, void *memory)
{
	struct runs m = {(uint8_t *)memory + a[3], (int64_t)a[2], (int64_t)a[0], (int64_t)a[1]};
	return pack(memory, &m), 0;
}

/* It is the first a[4] bytes that are unpacked. */
static uint64_t of_unpack(const uint64_t *a, void *memory)
{
	struct runs m = {(uint8_t *)memory + a[3], (int64_t)a[2], (int64_t)a[0], (int64_t)a[1]};
	return unpack(&m, memory, (int64_t)a[4]), 0;
}

/* ---- What a face and the core have for short.c and the other files ---- */

uint8_t gompi_kinds[GOMPI_FIRST_HANDLE];
struct gompi_mpi_core gompi_core;
static struct gompi_lease lease;
static uint64_t woken; /* a bit for each rank */
static int64_t clock_now;

void gompi_status_out(MPI_Status *p, const struct gompi_status *s) { (void)p, (void)s; }

static void wake(int32_t local) { woken |= UINT64_C(1) << local; }

/* Instead of glibc's */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){clock_now / 1000000000, clock_now % 1000000000};
	return 0;
}

/* datatype and operator return handles of elements and operators of package mem. */
static MPI_Datatype datatype(uint64_t type, uint64_t size)
{
	uint64_t id = GOMPI_ID_DATATYPE_NULL + 1 + type;
	gompi_kinds[id] = KIND_datatype;
	lease.sizes[id] = (uint8_t)size;
	lease.elements[id] = (uint8_t)type;
	return (MPI_Datatype)id;
}

static MPI_Op operator(uint64_t op)
{
	gompi_kinds[op] = gompi_kinds[GOMPI_ID_OP_REPLACE] = gompi_kinds[GOMPI_ID_OP_NOTHING] = KIND_op;
	if (op < GOMPI_ID_OP_REPLACE)
		lease.operators[op] = (uint8_t)op;
	return (MPI_Op)op;
}

/* ---- Collectives of a Team ---- */

struct members {
	uint64_t cursors[8];
	struct gompi_bounce rings[2];
	uint8_t send[1 << 14], recv[1 << 14];
	uint8_t blocks[];
};

/* a is the kind; the member, and from bit 8 on how many there are; the type, and from bit 8 on its size, from bit 16
 * on the operator; the root; the count; and the bytes of a block. It returns whether it is done, and from bit 1 on
 * the members woken. */
static uint64_t of_collective(const uint64_t *a, void *memory)
{
	struct members *m = memory;
	struct gompi_team *t = &lease.teams[0];
	MPI_Comm comm = (MPI_Comm)GOMPI_ID_COMM_WORLD;
	MPI_Datatype type = datatype(a[2] & 0xff, a[2] >> 8 & 0xff);
	MPI_Op op = operator(a[2] >> 16);
	int root = (int)a[3], n = (int)a[4], done = 0;
	*t = (struct gompi_team){
		.word = GOMPI_LEASE_LENT, .me = a[1] & 0xff, .size = (int32_t)(a[1] >> 8), .looks = 8, .left = 1,
		.rings = {&m->rings[0], &m->rings[1]},
	};
	for (int i = 0; i < t->size; i++) {
		t->blocks[i] = (struct gompi_block *)(m->blocks + (uint64_t)i * a[5]);
		t->locals[i] = i;
	}
	for (size_t i = 0; i < sizeof t->most / sizeof *t->most; i++)
		t->most[i] = GOMPI_LEASE_MOST_BYTES;
	memcpy(&t->step, m->cursors, sizeof m->cursors);
	gompi_kinds[GOMPI_ID_COMM_WORLD] = KIND_comm;
	gompi_core.wake = wake;
	gompi_lease = &lease;
	woken = 0;
	switch (a[0]) {
	case GOMPI_KIND_BARRIER: done = gompi_short_barrier(comm); break;
	case GOMPI_KIND_BCAST: done = gompi_short_bcast(m->recv, n, type, root, comm); break;
	case GOMPI_KIND_REDUCE: done = gompi_short_reduce(m->send, m->recv, n, type, op, root, comm); break;
	case GOMPI_KIND_ALLREDUCE: done = gompi_short_allreduce(m->send, m->recv, n, type, op, comm); break;
	case GOMPI_KIND_REDUCE_SCATTER_BLOCK:
		done = gompi_short_reduce_scatter_block(m->send, m->recv, n, type, op, comm);
		break;
	case GOMPI_KIND_ALLGATHER: done = gompi_short_allgather(m->send, n, type, m->recv, n, type, comm); break;
	case GOMPI_KIND_GATHER: done = gompi_short_gather(m->send, n, type, m->recv, n, type, root, comm); break;
	case GOMPI_KIND_SCATTER: done = gompi_short_scatter(m->send, n, type, m->recv, n, type, root, comm); break;
	case GOMPI_KIND_ALLTOALL: done = gompi_short_alltoall(m->send, n, type, m->recv, n, type, comm); break;
	}
	memcpy(m->cursors, &t->step, sizeof m->cursors);
	return (uint64_t)done | woken << 1;
}

/* ---- Accesses to a window ---- */

struct access {
	uint8_t there[64], in[64], out[64], compared[64];
};

/* a is the function, the type, its size, MPI's number of the operator, the count, and the offset in bytes. */
static uint64_t of_access(const uint64_t *a, void *memory)
{
	struct access *m = memory;
	struct gompi_part part = {.here = m->there, .size = sizeof m->there, .unit = 1, .direct = 1, .shared = 1};
	struct gompi_window window = {.parts = &part, .ranks = 1, .fenced = 1};
	MPI_Datatype type = datatype(a[1], a[2]);
	MPI_Op op = operator(a[3]);
	MPI_Win win = (MPI_Win)GOMPI_FIRST_HANDLE;
	MPI_Aint at = (MPI_Aint)a[5];
	int n = (int)a[4];
	gompi_lease = &lease;
	lease.windows[0] = &window;
	switch (a[0]) {
	case 0: return (uint64_t)gompi_short_put(m->in, n, type, 0, at, n, type, win);
	case 1: return (uint64_t)gompi_short_get(m->out, n, type, 0, at, n, type, win);
	case 2: return (uint64_t)gompi_short_accumulate(m->in, n, type, 0, at, n, type, op, win);
	case 3: return (uint64_t)gompi_short_get_accumulate(m->in, n, type, m->out, n, type, 0, at, n, type, op, win);
	case 4: return (uint64_t)gompi_short_fetch_and_op(m->in, m->out, type, 0, at, op, win);
	default: return (uint64_t)gompi_short_compare_and_swap(m->in, m->compared, m->out, type, 0, at, win);
	}
}

/* ---- Receives, in the memory of a lease ---- */

/* It posts a receive on a[0] from source a[1] with tag a[2], and returns its place. */
static uint64_t of_post(const uint64_t *a, void *memory)
{
	struct gompi_lease *l = memory;
	struct operation o = {.l = l, .c = &l->channels[a[0]]};
	struct runs m = {(uint8_t *)a[3], (int64_t)a[4], (int64_t)a[4], (int64_t)a[4]};
	struct gompi_held *x = queues_post(&o, (int)a[1], (int)a[2], &m);
	return x ? (uint64_t)(x - l->held) : GOMPI_LEASE_HELD;
}

/* It returns the place of the receive that takes a message of local rank a[0] with tag a[1] in the context a[2]. */
static uint64_t of_take(const uint64_t *a, void *memory)
{
	struct gompi_lease *l = memory;
	struct gompi_header h = header_encode(0, (int32_t)a[1], a[2], 0);
	struct gompi_held *x = queues_take_recv(l, &l->peers[a[0]], &h);
	if (!x)
		return GOMPI_LEASE_HELD;
	queues_cancel(l, x);
	drop(l, x);
	return (uint64_t)(x - l->held);
}

/* ---- Counted calls, in the area of a rank ---- */

static const char name[] = "allreduce";

/* It returns what the name is in the key of a site. */
static uint64_t of_name(const uint64_t *a, void *memory)
{
	(void)a, (void)memory;
	return (uint64_t)(uintptr_t)name * GOMPI_STATS_ODD;
}

/* a is the caller, when the call begins, how much earlier it has, when it ends, its bytes, and its peer, and from bit
 * 32 on its tag. */
static uint64_t of_span(const uint64_t *a, void *memory)
{
	struct gompi_span span = {0};
	gompi_stats.counters = memory;
	clock_now = (int64_t)a[1];
	gompi_span_begin(&span, name, (const void *)a[0]);
	if (span.begin)
		span.begin -= (int64_t)a[2];
	gompi_count((int64_t)a[4], (int32_t)a[5], (int64_t)(a[5] >> 32));
	clock_now = (int64_t)a[3];
	if (span.site)
		gompi_span_end(&span);
	return 0;
}

/* A message of a[1] bytes is sent to local rank a[0]. */
static uint64_t of_sent(const uint64_t *a, void *memory)
{
	static const int32_t worlds[] = {3, 0, 9};
	gompi_stats = (struct gompi_stats){memory, worlds};
	return gompi_count_sent((int)a[0], 0, a[1]), 0;
}

static const struct {
	const char *name;
	uint64_t (*run)(const uint64_t *a, void *memory);
} functions[] = {
	{"header_encode", of_header}, {"cost", of_cost}, {"encoded_call_digest", of_digest},
	{"control_arrive", of_arrive}, {"control_begin", of_begin}, {"control_end", of_end},
	{"counters_enter", of_enter}, {"counters_exit", of_exit}, {"team_lay", of_lay},
	{"recorder_begin", of_record}, {"mem_reduce", of_reduce},
	{"writer_begin", of_send}, {"reader_next", of_receive}, {"pack", of_pack}, {"unpack", of_unpack},
	{"collective", of_collective}, {"access", of_access}, {"queues_post", of_post}, {"queues_take_recv", of_take},
	{"name", of_name}, {"gompi_span", of_span}, {"gompi_count_sent", of_sent},
};

int main(void)
{
	struct request r;
	while (fread(&r, sizeof r, 1, stdin) == 1) {
		void *memory = aligned_alloc(128, (r.length / 128 + 1) * 128);
		size_t i = 0;
		while (i < sizeof functions / sizeof *functions && strcmp(functions[i].name, r.name))
			i++;
		if (!memory || i == sizeof functions / sizeof *functions || fread(memory, 1, r.length, stdin) != r.length) {
			fprintf(stderr, "twins: %s of %llu bytes: want a function of twins.c\n", r.name, (unsigned long long)r.length);
			return 1;
		}
		uint64_t result = functions[i].run(r.args, memory);
		fwrite(&result, sizeof result, 1, stdout);
		fwrite(memory, 1, r.length, stdout);
		fflush(stdout);
		free(memory);
	}
	return 0;
}
