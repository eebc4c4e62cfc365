/* Runs functions of C on memory that package twins sends, and sends it back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "counters.h"
#include "locks.h"
#include "recorder.h"
#include "reduce.h"
#include "rings.h"
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
	uint64_t after = team_lay(&t, a[0], a[1]);
	memcpy((struct gompi_bounce *)memory + 1, &after, sizeof after);
	return t.place;
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
};

/* lay_out has side s's ends point to the rings, which lie behind both sides and are each a[1] bytes long. */
static void lay_out(struct sides *p, int s, uint64_t length)
{
	uint8_t *to = (uint8_t *)(p + 1) + (uint64_t)s * length, *from = (uint8_t *)(p + 1) + (uint64_t)!s * length;
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
	enum look seen = reader_next(&p->in[a[0]], &f);
	if (seen == FRAME) {
		reader_fetch(&p->in[a[0]], &f);
		reader_done(&p->in[a[0]], &p->out[a[0]], &f);
	}
	fold(p, (int)a[0]);
	return seen;
}

static const struct {
	const char *name;
	uint64_t (*run)(const uint64_t *a, void *memory);
} functions[] = {
	{"header_encode", of_header}, {"cost", of_cost}, {"encoded_call_digest", of_digest},
	{"control_arrive", of_arrive}, {"control_begin", of_begin}, {"control_end", of_end},
	{"counters_enter", of_enter}, {"counters_exit", of_exit}, {"team_lay", of_lay},
	{"recorder_begin", of_record}, {"mem_reduce", of_reduce},
	{"writer_begin", of_send}, {"reader_next", of_receive},
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
