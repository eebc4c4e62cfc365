/* Short messages without entering Go, while Go lends what they need: see ../lease.h. An operation is
 * finished whole, or nothing has changed and Go does it. What follows does what writer and reader of
 * package shm do, and sendNow and recvNow of package message. */
#include "short.h"
#include <string.h>

struct gompi_lease *gompi_lease;
static __thread bool inside __attribute__((tls_model("initial-exec")));

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
/* Of looks in vain without a success between, every GOMPI_VAIN is Go's, and all behind the first
 * GOMPI_LONG_VAIN, some milliseconds. */
enum { GOMPI_VAIN = 1024, GOMPI_LONG_VAIN = 1 << 18 };
enum { MAGIC = 0x6d, VERSION = 8, EAGER = 1 };

static inline uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t upper(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- The lease ---- */

/* An operation is what C does while it has the lease. */
struct operation {
	struct gompi_lease *l;
	struct gompi_channel *c;
	struct gompi_peer *p;
};

static void leave(struct operation *o)
{
	inside = false;
	__atomic_store_n(&o->l->word, GOMPI_LENT, __ATOMIC_RELEASE);
}

/* tossed reports whether an operation is left to Go, by a coin: for tests. */
static bool tossed(const struct gompi_lease *l)
{
	static __thread uint32_t x;
	if (!l->mix)
		return false;
	x = (x ? x : (uint32_t)(uintptr_t)&x) * 1664525 + 1013904223;
	return x >> 31;
}

static inline int slot_of(gompi_word comm)
{
	return comm == GOMPI_WORLD_ID ? 0 : (int)comm - GOMPI_FIRST_HANDLE + 1;
}

/* miss has Go lend what an operation needs when it has made it. */
static bool miss(struct gompi_lease *l, gompi_word comm, int rank)
{
	l->missed_comm = (int32_t)comm;
	l->missed_rank = rank;
	__atomic_store_n(&l->missed, 1, __ATOMIC_RELEASE);
	return false;
}

/* begin takes the lease for an operation with a rank of a communicator. If it reports false, Go does
 * the operation. */
static inline bool begin(struct operation *o, gompi_word comm, int rank)
{
	struct gompi_lease *l = o->l;
	int slot = slot_of(comm);
	if (slot < 0 || slot >= GOMPI_SLOTS || rank < 0)
		return false;
	uint32_t was = GOMPI_LENT;
	if (!__atomic_load_n(&l->wanted, __ATOMIC_RELAXED) && !tossed(l) &&
	    __atomic_compare_exchange_n(&l->word, &was, GOMPI_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		inside = true;
		o->c = &l->channels[slot];
		if (o->c->stamp == l->stamp && rank < o->c->size && l->left > 0) {
			int local = l->routes[slot][rank] - 1;
			o->p = &l->peers[local < 0 ? 0 : local];
			if (local >= 0 && o->p->stamp == l->stamp) {
				o->c->used = o->p->used = 1;
				l->left--;
				return true;
			}
		}
		leave(o);
	}
	return miss(l, comm, rank);
}

/* gompi_short_abandon is called before Go is entered: a handler of a signal, such as one that reports
 * a segmentation fault, has interrupted an operation of its own thread, which does not go on. */
void gompi_short_abandon(void)
{
	if (inside) {
		inside = false;
		__atomic_store_n(&gompi_lease->word, GOMPI_NONE, __ATOMIC_RELEASE);
	}
}

/* ---- Rings ---- */

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
static bool write_frame(struct gompi_writer *w, const struct header *h, const void *body)
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
	if ((w->bulk || n > GOMPI_SMALL_BODY) && r->lap < w->full && at(r, next) == 0)
		return false;
	w->bulk = w->bulk || n > GOMPI_SMALL_BODY;
	uint64_t *here = word(r, w->tail);
	memcpy((uint8_t *)here + WORD, h, HEADER);
	memcpy((uint8_t *)here + HEAD, body, n);
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
static bool give_up(struct gompi_peer *p, const struct record *f)
{
	struct gompi_reader *r = p->r;
	struct gompi_writer *w = p->w;
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

/* ---- Messages ---- */

/* cost is Cost of package peers. */
static int64_t cost(uint64_t n)
{
	return !n ? 256 : 256 + (1LL << (64 - __builtin_clzll((n < 64 ? 64 : n) - 1)));
}

/* bytes_of returns how long count elements are, -1 if they are not one run of bytes, or not valid. */
static inline int64_t bytes_of(const void *buf, int64_t count, MPI_Datatype type)
{
	gompi_word id = IN_datatype(type);
	uint32_t size = id >= 0 && id < GOMPI_SIZES ? gompi_lease->sizes[id] : 0;
	return !size || count < 0 || (!buf && count) ? -1 : count * size;
}

int gompi_short_send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l)
		return 0;
	int64_t n = bytes_of(buf, count, type);
	if (n < 0 || tag < 0 || !begin(&o, IN_comm(comm), dest))
		return 0;
	struct gompi_writer *w = o.p->w;
	struct header h = {
		.magic = MAGIC, .version = VERSION, .kind = EAGER, .flags = (uint8_t)o.l->type,
		.tag = tag, .comm = o.c->context, .length = (uint64_t)n,
	};
	if (n > o.l->most || o.p->credit->out + cost(n) > o.l->credit || !w->tail || !write_frame(w, &h, buf)) {
		leave(&o);
		return miss(o.l, IN_comm(comm), dest);
	}
	o.p->credit->out += cost(n);
	o.p->carried->messages++;
	o.p->carried->bytes += (uint64_t)n;
	o.l->vain = 0;
	bool asleep = __atomic_load_n(o.p->parked, __ATOMIC_SEQ_CST);
	int local = o.p->local;
	leave(&o);
	if (asleep)
		gompi_core.wake(local);
	return 1;
}

/* take takes a frame that is a message. It reports false if it has done nothing. */
static bool take(struct operation *o, const struct record *f, int tag, void *buf, int64_t room, struct gompi_status *st, bool *waits)
{
	struct gompi_credit *credit = o->p->credit;
	const struct header *h = f->h;
	if (h->flags != o->l->type || h->comm != o->c->context || (h->tag != tag && tag != GOMPI_ANY_TAG) ||
	    (int64_t)f->length > room || credit->owed + cost(f->length) >= o->l->credit / 4)
		return false;
	st->tag = h->tag;
	st->bytes = (int64_t)f->length;
	if (*o->p->behind)
		fetch(o->p->r, f);
	memcpy(buf, f->body, f->length);
	credit->owed += cost(f->length);
	*o->p->behind = true;
	o->l->vain = 0;
	*waits = give_up(o->p, f);
	return true;
}

int gompi_short_recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l)
		return 0;
	int64_t n = bytes_of(buf, count, type);
	int t = (int)IN_tag(tag);
	if (n < 0 || t == GOMPI_BAD || !begin(&o, IN_comm(comm), source))
		return 0;
	struct gompi_status st = {.source = source, .error = -1};
	struct record f;
	bool waits = false, taken = false;
	if (o.p->r->ring.mem) {
		uint32_t looks = o.l->spin;
		enum look seen;
		while ((seen = look_at(o.p->r, &f)) == NOTHING && looks-- > 0 && !__atomic_load_n(&o.l->wanted, __ATOMIC_RELAXED))
			*o.p->behind = false;
		taken = seen == FRAME && take(&o, &f, t, buf, n, &st, &waits);
	}
	int local = o.p->local;
	leave(&o);
	if (!taken)
		return miss(o.l, IN_comm(comm), source);
	if (waits)
		gompi_core.wake(local);
	if (status != MPI_STATUS_IGNORE)
		gompi_status_out(status, &st);
	return 1;
}

/* enough reports that a look in vain is to be Go's: it makes progress with all else, and sleeps if the
 * program does nothing but look. */
static bool enough(struct gompi_lease *l)
{
	return !l->spin || ++l->vain > GOMPI_LONG_VAIN || l->vain % GOMPI_VAIN == 0;
}

int gompi_short_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct operation o = {.l = gompi_lease};
	int t = (int)IN_tag(tag);
	if (!o.l || !flag || t == GOMPI_BAD || !begin(&o, IN_comm(comm), source))
		return 0;
	struct gompi_status st = {.source = source, .error = -1};
	struct record f;
	enum look seen = o.p->r->ring.mem ? look_at(o.p->r, &f) : OTHER;
	if (seen == FRAME && f.h->flags == o.l->type && f.h->comm == o.c->context && (f.h->tag == t || t == GOMPI_ANY_TAG)) {
		st.tag = f.h->tag;
		st.bytes = (int64_t)f.length;
		o.l->vain = 0;
	} else if (seen != NOTHING || enough(o.l)) {
		seen = OTHER;
	}
	leave(&o);
	if (seen == OTHER)
		return miss(o.l, IN_comm(comm), source);
	if ((*flag = seen == FRAME) && status != MPI_STATUS_IGNORE)
		gompi_status_out(status, &st);
	return 1;
}
