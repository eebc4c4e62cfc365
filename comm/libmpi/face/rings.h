/* Frames of one record in the rings of shared memory, as writer and reader of package shm write and read
 * them. */
#ifndef GOMPI_FACE_RINGS_H
#define GOMPI_FACE_RINGS_H
#include "runs.h"
#include "short.h"

enum { LINE = 64, WORD = 8, HEADER = 48, HEAD = WORD + HEADER };
enum { FIRST = 1, INVITE = 3, GROWN = 0x80, TURNED = 0x40 };
enum { LENGTH_AT = 8, READ_AT = 24, TO_READ = READ_AT - 6 };
#define READ_MASK (~0ULL << READ_AT)

/* A frame's header: Header of package transport, little-endian. */
struct header {
	uint8_t magic, version, kind, flags;
	int32_t tag;
	uint64_t comm, seq, length, a, b;
};
_Static_assert(sizeof(struct header) == HEADER, "a header has another size");
enum { MAGIC = 0x6d, VERSION = 8, EAGER = 1 };

static inline uint64_t at(const struct gompi_ring *r, uint64_t pos) { return (pos - r->base) & (r->lap - 1); }
static inline uint64_t end(const struct gompi_ring *r, uint64_t pos) { return pos + ((r->base - pos) & (r->lap - 1)); }
static inline uint64_t *word(const struct gompi_ring *r, uint64_t pos) { return (uint64_t *)(r->mem + at(r, pos)); }
static inline uint64_t size_of(uint64_t n) { return (WORD + n + LINE - 1) & ~(uint64_t)(LINE - 1); }

static void wipe(struct gompi_writer *w, uint64_t pos, int n)
{
	w->clean = lower(pos + (uint64_t)n * LINE, w->seen + w->ring.lap);
	for (; pos < w->clean; pos += LINE)
		*word(&w->ring, pos) = 0;
}

/* room returns how many bytes the next record may take. */
static inline uint64_t room(struct gompi_writer *w)
{
	const struct gompi_ring *r = &w->ring;
	uint64_t free = r->lap - LINE - (w->tail - w->seen);
	if ((int64_t)free < (int64_t)lower(r->lap / 2, 2 * (uint64_t)w->most)) {
		w->seen = upper(w->seen, __atomic_load_n(&r->control->head, __ATOMIC_ACQUIRE));
		free = r->lap - LINE - (w->tail - w->seen);
	}
	return (int64_t)free < 0 ? 0 : lower(lower(free, r->lap - at(r, w->tail)), (uint64_t)w->most);
}

/* write_frame writes a frame of one record. It reports false if it has done nothing: there is no room,
 * or the ring grows. */
static bool write_frame(struct gompi_writer *w, const struct header *h, const struct runs *body)
{
	const struct gompi_ring *r = &w->ring;
	uint64_t n = h->length, size = size_of(HEADER + n), next = w->tail + size, kind = FIRST;
	if (room(w) < HEAD + n)
		return false;
	bool small = size <= GOMPI_SMALL_RECORD, answered = small && w->seen == w->tail;
	if (w->turns && small) {
		next = end(r, next);
		kind |= TURNED;
	}
	bool streams = w->full <= GOMPI_STREAM_LAP && w->tail - w->seen > r->lap / 2, bulk = w->bulk || n > GOMPI_SMALL_BODY || streams;
	if (bulk && r->lap < w->full && at(r, next) == 0)
		return false;
	w->bulk = bulk;
	uint64_t *here = word(r, w->tail);
	if (n > 2 * LINE)
		gompi_own((uint8_t *)here + LINE, HEAD + n - LINE); /* the other rank looks at the first line */
	memcpy((uint8_t *)here + WORD, h, HEADER);
	pack((uint8_t *)here + HEAD, body);
	if (kind & TURNED)
		w->clean = next + LINE;
	if (w->clean <= next)
		wipe(w, next, 1);
	__atomic_store_n(here, w->read << TO_READ | (HEADER + n) << LENGTH_AT | kind, __ATOMIC_SEQ_CST);
	w->tail = next;
	if (w->clean == next + LINE)
		wipe(w, w->clean, GOMPI_AHEAD);
	if (!answered || at(r, next) == 0)
		w->since = next;
	w->turns = next - w->since >= GOMPI_SHORT_LAP + size;
	if (w->turns)
		*word(r, end(r, next)) = 0;
	return true;
}

/* A record is one that a reader has found: a whole frame. */
struct record {
	const struct header *h;
	const uint8_t *body;
	uint64_t length; /* of body: what the frame says may change */
	uint64_t after, read;
};

enum look { NOTHING, FRAME, OTHER };

/* look_at finds the next record. OTHER is one that Go reads. */
static inline enum look look_at(const struct gompi_reader *r, struct record *f)
{
	uint64_t w = __atomic_load_n(r->here, __ATOMIC_ACQUIRE);
	if (!w)
		return NOTHING;
	uint64_t n = w >> LENGTH_AT & 0xffff, place = at(&r->ring, r->pos);
	if ((w & 0xff & ~TURNED) != FIRST || n < HEADER || n > r->ring.lap - place - WORD)
		return OTHER;
	f->h = (const struct header *)(r->ring.mem + place + WORD);
	f->body = r->ring.mem + place + HEAD;
	f->length = n - HEADER;
	f->after = r->pos + size_of(n);
	if (w & TURNED)
		f->after = end(&r->ring, f->after);
	f->read = w & READ_MASK;
	return f->h->length == f->length && f->h->magic == MAGIC && f->h->version == VERSION && f->h->kind == EAGER ? FRAME : OTHER;
}

/* give_up gives the place of a record back. It reports whether its writer may wait for that. */
static bool give_up(struct gompi_reader *r, struct gompi_writer *w, const struct record *f)
{
	bool waits = false;
	r->pos = f->after;
	r->here = word(&r->ring, r->pos);
	if (r->pos - r->returned >= r->ring.lap / 4) {
		r->returned = r->pos;
		__atomic_store_n(&r->ring.control->head, r->pos, __ATOMIC_SEQ_CST);
		waits = __atomic_load_n(&r->ring.control->hungry, __ATOMIC_SEQ_CST) != 0;
	}
	w->seen = upper(w->seen, w->tail - (((w->tail << TO_READ) - f->read) >> TO_READ));
	w->read = r->pos;
	return waits;
}

static void fetch(const struct gompi_reader *r, const struct record *f)
{
	uint64_t from = at(&r->ring, f->after), n = lower(lower(size_of(HEADER + f->length), GOMPI_FETCHED), r->ring.lap - from);
	for (uint64_t i = 0; i < n; i += LINE)
		__builtin_prefetch(r->ring.mem + from + i);
}

#endif
