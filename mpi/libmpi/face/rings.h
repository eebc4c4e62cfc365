/* Frames of one record in the rings of shared memory, as writer and reader of package shm write and read
 * them. Functions have the names of their brothers in Go, type_method for a method. */
#ifndef GOMPI_FACE_RINGS_H
#define GOMPI_FACE_RINGS_H
#include "../shared.h"
#include "lines.h"
#include "runs.h"

enum { LINE = GOMPI_RING_LINE_SIZE, WORD = GOMPI_RING_WORD_SIZE, HEADER = GOMPI_FRAME_HEADER_SIZE, HEAD = GOMPI_RING_FRAME_HEAD };

/* cost is Cost of package peers, with SizeClass of mem. */
static inline int64_t cost(uint64_t n)
{
	return !n ? GOMPI_COST_RECORD_SIZE : GOMPI_COST_RECORD_SIZE + (1LL << (64 - __builtin_clzll(upper(n, GOMPI_SCRATCH_LEAST_SIZE) - 1)));
}

/* Header.Encode, of a message with its payload. */
static inline struct gompi_header header_encode(uint32_t flags, int32_t tag, uint64_t comm, uint64_t len)
{
	return (struct gompi_header){
		.magic = GOMPI_FRAME_MAGIC, .version = GOMPI_FRAME_VERSION, .kind = GOMPI_FRAME_EAGER, .flags = (uint8_t)flags,
		.tag = tag, .comm = comm, .len = len,
	};
}

/* ring.at */
static inline uint64_t ring_at(const struct gompi_ring *r, uint64_t pos) { return (pos - r->base) & (r->lap - 1); }

/* ring.end */
static inline uint64_t ring_end(const struct gompi_ring *r, uint64_t pos) { return pos + ((r->base - pos) & (r->lap - 1)); }

/* ring.word */
static inline uint64_t *ring_word(const struct gompi_ring *r, uint64_t pos) { return (uint64_t *)(r->mem + ring_at(r, pos)); }

static inline uint64_t length(uint64_t n) { return (WORD + n + LINE - 1) & ~(uint64_t)(LINE - 1); }

/* writer.wipe */
static inline void writer_wipe(struct gompi_writer *w, uint64_t pos, int n)
{
	w->clean = lower(pos + (uint64_t)n * LINE, w->seen + w->ring.lap);
	for (; pos < w->clean; pos += LINE)
		*ring_word(&w->ring, pos) = 0;
}

/* writer.room: it returns how many bytes the next record may take. */
static inline uint64_t writer_room(struct gompi_writer *w)
{
	const struct gompi_ring *r = &w->ring;
	uint64_t free = r->lap - LINE - (w->tail - w->seen);
	if ((int64_t)free < (int64_t)lower(r->lap / 2, 2 * (uint64_t)w->most)) {
		w->seen = upper(w->seen, __atomic_load_n(&r->control->head, __ATOMIC_ACQUIRE));
		free = r->lap - LINE - (w->tail - w->seen);
	}
	return (int64_t)free < 0 ? 0 : lower(lower(free, r->lap - ring_at(r, w->tail)), (uint64_t)w->most);
}

/* writer.streams */
static inline bool writer_streams(const struct gompi_writer *w)
{
	return w->tail - w->seen > w->ring.lap / 2;
}

/* writer.noteRead */
static inline void writer_note_read(struct gompi_writer *w, uint64_t read)
{
	w->seen = upper(w->seen, w->tail - (((w->tail << GOMPI_RING_TO_READ) - read) >> GOMPI_RING_TO_READ));
}

/* writer.plan, where next is tail, which would be loaded again behind what writer_wipe has stored. */
static inline void writer_plan(struct gompi_writer *w, uint64_t next, uint64_t size, bool answered)
{
	const struct gompi_ring *r = &w->ring;
	if (!answered || ring_at(r, next) == 0)
		w->since = next;
	w->turns = next - w->since >= GOMPI_RING_SHORT_LAP + size;
	if (w->turns)
		*ring_word(r, ring_end(r, next)) = 0;
}

/* cells.at */
static inline uint8_t *cells_at(const struct gompi_cells *c, uint64_t name) { return c->mem[name & 1] + (name >> 1) * GOMPI_RING_CELL_SIZE; }

/* writer.begin, fill and publish, of a frame of one record. It reports false if it has done nothing: there is no
 * room, the ring grows, or Go is to choose the copy. */
static inline bool writer_begin(struct gompi_writer *w, const struct gompi_header *h, const struct runs *body)
{
	const struct gompi_ring *r = &w->ring;
	struct gompi_cells *c = h->len >= GOMPI_RING_CHOSEN_FROM && w->cells && w->cells->n ? w->cells : NULL;
	uint64_t n = c ? WORD : h->len, size = length(HEADER + n), next = w->tail + size, kind = GOMPI_RING_FIRST;
	if (writer_room(w) < HEAD + n || (n >= GOMPI_RING_CHOSEN_FROM && !w->plain))
		return false;
	bool small = size <= GOMPI_RING_SMALL_RECORD, answered = small && w->seen == w->tail,
	     bulk = w->bulk || (!c && (n > GOMPI_RING_SMALL_BODY || writer_streams(w)));
	if (w->turns && small) {
		next = ring_end(r, next);
		kind |= GOMPI_RING_TURNED;
	}
	if (bulk && r->lap < w->full && ring_at(r, next) == 0)
		return false;
	w->bulk = bulk;
	w->plain -= n >= GOMPI_RING_CHOSEN_FROM;
	uint64_t *here = ring_word(r, w->tail);
	if (n > 2 * LINE)
		gompi_own((uint8_t *)here + LINE, HEAD + n - LINE); /* the other rank looks at the first line */
	memcpy((uint8_t *)here + WORD, h, HEADER);
	if (c) {
		uint64_t name = c->owned[--c->n];
		pack(cells_at(c, name), body);
		here[HEAD / WORD] = h->len << 8 | name;
		kind |= GOMPI_RING_IN_CELL;
	} else {
		pack((uint8_t *)here + HEAD, body);
	}
	if (kind & GOMPI_RING_TURNED)
		w->clean = next + LINE;
	if (w->clean <= next)
		writer_wipe(w, next, 1);
	__atomic_store_n(here, w->read << GOMPI_RING_TO_READ | (HEADER + n) << GOMPI_RING_LENGTH_AT | kind, __ATOMIC_SEQ_CST);
	w->tail = next;
	if (w->clean == next + LINE)
		writer_wipe(w, w->clean, GOMPI_RING_AHEAD);
	writer_plan(w, next, size, answered);
	return true;
}

/* A record is one that a reader has found: a whole frame. */
struct record {
	const struct gompi_header *h;
	const uint8_t *body;
	uint64_t length; /* of body: what the frame says may change */
	uint64_t after, read;
	struct gompi_cells *cells; /* NULL unless body lies in a cell */
};

enum look { NOTHING, FRAME, OTHER };

/* peer.next, of frames of one record. OTHER is one that Go reads. */
static inline enum look reader_next(const struct gompi_reader *r, struct gompi_cells *c, struct record *f)
{
	uint64_t w = __atomic_load_n(r->here, __ATOMIC_ACQUIRE);
	if (!w)
		return NOTHING;
	uint64_t n = w >> GOMPI_RING_LENGTH_AT & GOMPI_RING_LENGTH_MASK, place = ring_at(&r->ring, r->pos);
	if ((w & 0xff & ~(GOMPI_RING_TURNED | GOMPI_RING_IN_CELL)) != GOMPI_RING_FIRST || n < HEADER || n > r->ring.lap - place - WORD)
		return OTHER;
	f->h = (const struct gompi_header *)(r->ring.mem + place + WORD);
	f->body = r->ring.mem + place + HEAD;
	f->length = n - HEADER;
	f->after = r->pos + length(n);
	if (w & GOMPI_RING_TURNED)
		f->after = ring_end(&r->ring, f->after);
	f->read = w & GOMPI_RING_READ_MASK;
	f->cells = NULL;
	if (w & GOMPI_RING_IN_CELL) { /* cells.named */
		if (!c || f->length != WORD)
			return OTHER;
		uint64_t word = *(const uint64_t *)f->body;
		c->read = (uint8_t)word ^ 1;
		if (c->read >> 1 >= c->most || word >> 8 > GOMPI_RING_CELL_SIZE)
			return OTHER;
		f->cells = c;
		f->body = cells_at(c, c->read);
		f->length = word >> 8;
	}
	return f->h->len == f->length && f->h->magic == GOMPI_FRAME_MAGIC && f->h->version == GOMPI_FRAME_VERSION && f->h->kind == GOMPI_FRAME_EAGER ? FRAME : OTHER;
}

/* peer.done. It reports whether the writer may wait for that. */
static inline bool reader_done(struct gompi_reader *r, struct gompi_writer *w, const struct record *f)
{
	bool waits = false;
	if (f->cells && f->cells->n < sizeof f->cells->owned)
		f->cells->owned[f->cells->n++] = f->cells->read;
	r->pos = f->after;
	r->here = ring_word(&r->ring, r->pos);
	if (r->pos - r->returned >= r->ring.lap / 4) {
		r->returned = r->pos;
		__atomic_store_n(&r->ring.control->head, r->pos, __ATOMIC_SEQ_CST);
		waits = __atomic_load_n(&r->ring.control->hungry, __ATOMIC_SEQ_CST) != 0;
	}
	writer_note_read(w, f->read);
	w->read = r->pos;
	return waits;
}

/* reader.fetch */
static inline void reader_fetch(const struct gompi_reader *r, const struct record *f)
{
	uint64_t from = ring_at(&r->ring, f->after), n = f->cells ? WORD : f->length;
	n = lower(lower(length(HEADER + n), GOMPI_RING_MOST_FETCHED), r->ring.lap - from);
	for (uint64_t i = 0; i < n; i += LINE)
		__builtin_prefetch(r->ring.mem + from + i);
}

#endif
