/* Short messages without entering Go, while Go lends what they need: see package lease. An operation is finished whole, or
 * nothing has changed and Go does it. Brothers are sendNow, recvNow and the queue of receives of package message. */
#include "rings.h"
#include "short.h"

struct gompi_lease *gompi_lease;
static __thread bool inside __attribute__((tls_model("initial-exec")));
__thread struct gompi_team *gompi_inside_team __attribute__((tls_model("initial-exec")));

/* Of looks in vain in a row, every GOMPI_VAIN is Go's, and all behind the first GOMPI_LONG_VAIN, some milliseconds. */
enum { GOMPI_VAIN = 4096, GOMPI_LONG_VAIN = 1 << 18 };

/* ---- The lease ---- */

/* An operation is what C does while it has the lease. */
struct operation {
	struct gompi_lease *l;
	struct gompi_channel *c;
	struct gompi_peer *p; /* NULL: any */
	int wakes;            /* a local rank that may sleep, -1 if none */
};

/* take_lease reports whether C has the lease now. */
static inline bool take_lease(struct operation *o)
{
	uint32_t was = GOMPI_LEASE_LENT;
	o->wakes = -1;
	if (__atomic_load_n(&o->l->wanted, __ATOMIC_RELAXED) || gompi_tossed(o->l) ||
	    !__atomic_compare_exchange_n(&o->l->word, &was, GOMPI_LEASE_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false; /* inside stays: a signal's handler may have interrupted an operation */
	inside = true;
	return true;
}

static inline void leave(struct operation *o)
{
	inside = false;
	__atomic_store_n(&o->l->word, GOMPI_LEASE_LENT, __ATOMIC_RELEASE);
	if (o->wakes >= 0)
		gompi_core.wake(o->wakes);
}

/* miss has Go lend what an operation needs when it has made it. */
static bool miss(struct gompi_lease *l, gompi_word comm, gompi_word rank)
{
	l->missed_comm = (int32_t)comm;
	l->missed_rank = (int32_t)rank;
	__atomic_store_n(&l->missed, 1, __ATOMIC_RELEASE);
	return false;
}

/* miss_again has it lend what the last operation needed that has said so. When C tests, Go gives its receives back, too. */
static bool miss_again(struct gompi_lease *l, bool tests)
{
	__atomic_store_n(&l->missed, tests ? GOMPI_LEASE_MISSED_TEST : 1, __ATOMIC_RELEASE);
	return false;
}

/* peer_of returns a member of a communicator, NULL if it is not lent. */
static inline struct gompi_peer *peer_of(struct gompi_lease *l, int slot, int member)
{
	int local = l->routes[slot][member] - 1;
	return local >= 0 && l->peers[local].stamp == l->stamp ? &l->peers[local] : NULL;
}

/* use says what is used, and reports whether it is lent. */
static inline bool use(struct operation *o, int slot, gompi_word rank)
{
	struct gompi_lease *l = o->l;
	o->c = &l->channels[slot];
	if (o->c->stamp != l->stamp || rank >= o->c->size || !l->left)
		return false;
	o->p = rank >= 0 ? peer_of(l, slot, (int)rank) : NULL;
	if (o->p)
		o->p->used = 1;
	for (int i = 0; rank < 0 && o->c->whole && i < o->c->size; i++)
		if (l->routes[slot][i])
			l->peers[l->routes[slot][i] - 1].used = 1;
	o->c->used = 1;
	return o->p || (rank < 0 && o->c->whole);
}

/* begin takes the lease for an operation with a rank of a communicator or GOMPI_ANY_SOURCE. If it reports false, Go does it. */
static inline bool begin(struct operation *o, gompi_word comm, gompi_word rank)
{
	int slot = gompi_slot_of(comm);
	if (slot < 0 || slot >= GOMPI_LEASE_CHANNELS || rank < GOMPI_ANY_SOURCE)
		return false;
	if (take_lease(o)) {
		if (use(o, slot, rank)) {
			o->l->left--;
			return true;
		}
		leave(o);
	}
	return miss(o->l, comm, rank);
}

/* gompi_short_abandon is called before Go is entered: a handler of a signal, such as one that reports
 * a segmentation fault, has interrupted an operation of its own thread, which does not go on. */
void gompi_short_abandon(void)
{
	if (inside) {
		inside = false;
		__atomic_store_n(&gompi_lease->word, GOMPI_LEASE_NONE, __ATOMIC_RELEASE);
	}
	if (gompi_inside_team) {
		__atomic_store_n(&gompi_inside_team->word, GOMPI_LEASE_NONE, __ATOMIC_RELEASE);
		gompi_inside_team = NULL;
	}
}

/* ---- Messages ---- */

/* runs_of returns the runs of count elements without gaps, or of one; their bytes are -1 if invalid or unknown to C. */
static inline struct runs runs_of(const void *buf, int64_t count, MPI_Datatype type)
{
	struct gompi_shape s = gompi_shape_of(type);
	if (!s.size || count < 0 || (!buf && count) || (count != 1 && !gompi_dense(s)))
		return (struct runs){.bytes = -1};
	int64_t bytes = count * (int64_t)s.size;
	return (struct runs){(uint8_t *)buf + s.off, bytes, s.run == s.size ? bytes : s.run, s.stride};
}

/* sendNow of package message, with SendNow of shm. */
int gompi_short_send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l || dest < 0)
		return 0;
	struct runs m = runs_of(buf, count, type);
	int64_t n = m.bytes;
	if (n < 0 || n > o.l->most || tag < 0 || !begin(&o, IN_comm(comm), dest))
		return 0;
	struct gompi_writer *w = o.p->writer;
	struct gompi_header h = header_encode(o.l->type, tag, o.c->context, (uint64_t)n);
	if (o.p->credit->out + cost(n) > o.l->credit || !w->tail || !writer_begin(w, &h, &m)) {
		leave(&o);
		return miss(o.l, IN_comm(comm), dest);
	}
	o.p->credit->out += cost(n);
	o.p->carried->messages++;
	o.p->carried->bytes += (uint64_t)n;
	o.l->vain = 0;
	if (gompi_counts())
		gompi_count_sent(o.p->local, tag, (uint64_t)n);
	if (__atomic_load_n(o.p->parked, __ATOMIC_SEQ_CST))
		o.wakes = o.p->local;
	leave(&o);
	return 1;
}

/* ---- Receives ---- */

/* Queues.Post of package match, of a receive: NULL if there is no place. */
static struct gompi_held *queues_post(struct operation *o, int source, int tag, const struct runs *m)
{
	struct gompi_lease *l = o->l;
	struct gompi_held *x = &l->held[l->place++ % GOMPI_LEASE_HELD];
	uint32_t was = GOMPI_HELD_FREE;
	if (!__atomic_compare_exchange_n(&x->state, &was, GOMPI_HELD_POSTED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return NULL;
	x->slot = (int32_t)(o->c - l->channels);
	x->source = source;
	x->tag = tag;
	x->bytes = m->bytes;
	x->run = m->run;
	x->stride = m->stride;
	x->buf = m->at;
	x->prev = l->last;
	x->next = 0;
	uint32_t here = (uint32_t)(x - l->held) + 1;
	*(l->last ? &l->held[l->last - 1].next : &l->first) = here;
	l->last = here;
	l->holds++;
	return x;
}

/* Queues.Cancel */
static void queues_cancel(struct gompi_lease *l, struct gompi_held *x)
{
	*(x->prev ? &l->held[x->prev - 1].next : &l->first) = x->next;
	*(x->next ? &l->held[x->next - 1].prev : &l->last) = x->prev;
}

static void drop(struct gompi_lease *l, struct gompi_held *x)
{
	l->holds--;
	x->state = GOMPI_HELD_FREE;
}

/* Queues.TakeRecv, which leaves the receive posted: the oldest for a message, NULL if there is none. */
static struct gompi_held *queues_take_recv(struct gompi_lease *l, const struct gompi_peer *p, const struct gompi_header *h)
{
	for (uint32_t i = l->first; i; i = l->held[i - 1].next) {
		struct gompi_held *x = &l->held[i - 1];
		if (l->channels[x->slot].context == h->comm && (x->tag == h->tag || x->tag == GOMPI_ANY_TAG) &&
		    (x->source == GOMPI_ANY_SOURCE || l->routes[x->slot][x->source] == p->local + 1))
			return x;
	}
	return NULL;
}

static int member_of(const struct gompi_lease *l, int slot, const struct gompi_peer *p)
{
	int i = 0;
	while (l->routes[slot][i] != p->local + 1)
		i++;
	return i;
}

/* receive receives a frame that x matches. It reports false if it has done nothing. */
static bool receive(struct operation *o, struct gompi_peer *p, const struct record *f, struct gompi_held *x)
{
	struct gompi_lease *l = o->l;
	if (f->h->flags != l->type || (int64_t)f->length > x->bytes || p->credit->owed + cost(f->length) >= l->credit / 4)
		return false;
	struct runs into = {x->buf, x->bytes, x->run, x->stride};
	queues_cancel(l, x);
	if (x->source == GOMPI_ANY_SOURCE)
		x->source = member_of(l, x->slot, p);
	x->tag = f->h->tag;
	x->bytes = (int64_t)f->length;
	x->state = GOMPI_HELD_ARRIVED;
	if (*p->behind)
		reader_fetch(p->reader, f);
	unpack(&into, f->body, (int64_t)f->length);
	p->credit->owed += cost(f->length);
	*p->behind = true;
	l->vain = 0;
	if (reader_done(p->reader, p->writer, f)) {
		if (o->wakes >= 0 && o->wakes != p->local)
			gompi_core.wake(o->wakes);
		o->wakes = p->local;
	}
	return true;
}

/* advance receives what has come from a peer, until x has arrived. FRAME: x has arrived, or no receive is posted for f. */
static inline enum look advance(struct operation *o, struct gompi_peer *p, const struct gompi_held *x, struct record *f)
{
	if (!p->reader->ring.mem)
		return OTHER;
	for (;;) {
		enum look seen = reader_next(p->reader, p->writer->cells, f);
		if (seen != FRAME) {
			*p->behind = *p->behind && seen;
			return seen;
		}
		struct gompi_held *to = queues_take_recv(o->l, p, f->h);
		if (!to)
			return x ? OTHER : FRAME;
		if (!receive(o, p, f, to))
			return OTHER;
		if (to == x)
			return FRAME;
	}
}

/* seek looks once for the message of x. FRAME: it has arrived. OTHER: Go is to look. */
static inline enum look seek(struct operation *o, struct gompi_held *x)
{
	struct gompi_lease *l = o->l;
	struct record f;
	if (x->state != GOMPI_HELD_POSTED)
		return x->state == GOMPI_HELD_ARRIVED ? FRAME : OTHER;
	struct gompi_channel *c = &l->channels[x->slot];
	if (x->source != GOMPI_ANY_SOURCE) {
		struct gompi_peer *p = peer_of(l, x->slot, x->source);
		return p ? advance(o, p, x, &f) : OTHER;
	}
	if (c->stamp != l->stamp || !c->whole)
		return OTHER;
	enum look seen = NOTHING;
	for (int i = 0; seen == NOTHING && i < c->size; i++)
		if (l->routes[x->slot][i])
			seen = advance(o, &l->peers[l->routes[x->slot][i] - 1], x, &f);
	return seen;
}

/* await is seek until the message of x has arrived, for as many looks in vain. */
static inline enum look await(struct operation *o, struct gompi_held *x, uint32_t *looks)
{
	enum look seen;
	while ((seen = seek(o, x)) == NOTHING && *looks > 0 && !__atomic_load_n(&o->l->wanted, __ATOMIC_RELAXED))
		--*looks;
	return seen;
}

static const struct gompi_status of_nothing = {.source = GOMPI_ANY_SOURCE, .tag = GOMPI_ANY_TAG, .error = -1};

static inline void set_status(MPI_Status *status, const struct gompi_status *st)
{
	if (status != MPI_STATUS_IGNORE && status != MPI_STATUSES_IGNORE)
		gompi_status_out(status, st);
}

/* collect ends a receive that has arrived. */
static inline void collect(struct gompi_lease *l, struct gompi_held *x, MPI_Status *status)
{
	struct gompi_status st = {.source = x->source, .tag = x->tag, .error = -1, .bytes = x->bytes};
	drop(l, x);
	set_status(status, &st);
}

/* recvNow of package message, with RecvNow of shm. */
int gompi_short_recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l)
		return 0;
	struct runs m = runs_of(buf, count, type);
	gompi_word t = IN_tag(tag), from = IN_rank(source);
	if (m.bytes < 0 || m.bytes > o.l->most || t == GOMPI_BAD || !begin(&o, IN_comm(comm), from))
		return 0;
	uint32_t looks = o.l->spin;
	struct gompi_held *x = queues_post(&o, (int)from, (int)t, &m);
	bool arrived = x && await(&o, x, &looks) == FRAME;
	if (arrived) {
		if (gompi_counts())
			gompi_count_received(o.l->routes[x->slot][x->source] - 1, x->tag, (uint64_t)x->bytes);
		collect(o.l, x, status);
	} else if (x) {
		queues_cancel(o.l, x);
		drop(o.l, x);
	}
	leave(&o);
	return arrived || miss(o.l, IN_comm(comm), from);
}

/* Channel.Irecv */
int gompi_short_irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l || !request)
		return 0;
	struct runs m = runs_of(buf, count, type);
	gompi_word t = IN_tag(tag), from = IN_rank(source);
	if (m.bytes < 0 || t == GOMPI_BAD || m.bytes > o.l->most || !begin(&o, IN_comm(comm), from))
		return 0;
	struct gompi_held *x = queues_post(&o, (int)from, (int)t, &m);
	if (x)
		*request = TO_request(GOMPI_ID_FIRST_HELD + (x - o.l->held));
	leave(&o);
	return x || miss(o.l, IN_comm(comm), from);
}

/* enough reports that a look in vain is to be Go's: Go makes progress with all else, and sleeps if the program only looks. */
static bool enough(struct gompi_lease *l)
{
	return !l->spin || ++l->vain > GOMPI_LONG_VAIN || l->vain % GOMPI_VAIN == 0;
}

int gompi_short_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	struct operation o = {.l = gompi_lease};
	gompi_word t = IN_tag(tag), from = IN_rank(source);
	if (!o.l || !flag || t == GOMPI_BAD || !begin(&o, IN_comm(comm), from))
		return 0;
	struct gompi_status st = {.source = source, .error = -1};
	struct record f;
	enum look seen = o.p ? advance(&o, o.p, NULL, &f) : NOTHING;
	int slot = (int)(o.c - o.l->channels);
	for (int i = 0; !o.p && seen == NOTHING && i < o.c->size; i++) {
		if (!o.l->routes[slot][i])
			continue;
		seen = advance(&o, &o.l->peers[o.l->routes[slot][i] - 1], NULL, &f);
		st.source = i;
	}
	if (seen == FRAME && f.h->flags == o.l->type && f.h->comm == o.c->context && (f.h->tag == t || t == GOMPI_ANY_TAG)) {
		st.tag = f.h->tag;
		st.bytes = (int64_t)f.length;
		o.l->vain = 0;
	} else if (seen != NOTHING || enough(o.l)) {
		seen = OTHER;
	}
	leave(&o);
	if (seen == OTHER)
		return miss(o.l, IN_comm(comm), from);
	if ((*flag = seen == FRAME))
		set_status(status, &st);
	return 1;
}

/* ---- Completion ---- */

/* kind_of says what is known of a request without the lease: *x is the receive if it is HELD. */
enum kind { GONE, OVER, HELD, GOS };
static inline enum kind kind_of(struct gompi_lease *l, MPI_Request r, struct gompi_held **x)
{
	gompi_word id = IN_request(r);
	*x = NULL;
	if (id >= GOMPI_ID_FIRST_HELD && id < GOMPI_ID_FIRST_HELD + GOMPI_LEASE_HELD) {
		*x = &l->held[id - GOMPI_ID_FIRST_HELD];
		return HELD;
	}
	return id == GOMPI_ID_REQUEST_NULL ? GONE : id == GOMPI_ID_REQUEST_DONE ? OVER : GOS;
}

/* known reports whether no request is Go's. */
static bool known(struct gompi_lease *l, int n, const MPI_Request *rs)
{
	struct gompi_held *x;
	for (int i = 0; i < n; i++)
		if (kind_of(l, rs[i], &x) == GOS)
			return false;
	return true;
}

/* finish completes a request that is over. */
static inline void finish(struct gompi_lease *l, MPI_Request *r, MPI_Status *status)
{
	struct gompi_held *x;
	if (kind_of(l, *r, &x) == HELD)
		collect(l, x, status);
	else
		set_status(status, &of_nothing);
	*r = MPI_REQUEST_NULL;
}

/* seek_all looks for the messages of requests from *at on, which moves behind those that are over. */
static enum look seek_all(struct operation *o, int n, const MPI_Request *rs, int *at, uint32_t *looks)
{
	for (; *at < n; ++*at) {
		struct gompi_held *x;
		enum look seen = kind_of(o->l, rs[*at], &x) == HELD ? await(o, x, looks) : FRAME;
		if (seen != FRAME)
			return seen;
	}
	return FRAME;
}

/* seek_any sets *at to a request that is over, n if all are null. */
static enum look seek_any(struct operation *o, int n, const MPI_Request *rs, int *at)
{
	bool active = false;
	for (*at = 0; *at < n; ++*at) {
		struct gompi_held *x;
		enum kind kind = kind_of(o->l, rs[*at], &x);
		enum look seen = kind == HELD ? seek(o, x) : kind == OVER ? FRAME : NOTHING;
		if (seen != NOTHING)
			return seen;
		active = active || kind != GONE;
	}
	return active ? NOTHING : FRAME;
}

/* complete waits for requests, or tests them if flag is not NULL: for one of them if index is not NULL, else for all. */
static int complete(int n, MPI_Request *rs, int *index, int *flag, MPI_Status *status)
{
	struct operation o = {.l = gompi_lease};
	if (!o.l || n < 0 || (n && !rs) || !known(o.l, n, rs) || !take_lease(&o))
		return o.l && miss_again(o.l, flag);
	uint32_t looks = flag ? 0 : o.l->spin;
	int at = 0;
	enum look seen;
	while ((seen = index ? seek_any(&o, n, rs, &at) : seek_all(&o, n, rs, &at, &looks)) == NOTHING && looks > 0 &&
	       !__atomic_load_n(&o.l->wanted, __ATOMIC_RELAXED))
		looks--;
	if (seen == FRAME) {
		for (int i = index ? at : 0; i < (index ? at + (at < n) : n); i++)
			finish(o.l, &rs[i], index || status == MPI_STATUSES_IGNORE ? status : &status[i]);
	} else if (!flag || seen == OTHER || enough(o.l)) {
		leave(&o);
		return miss_again(o.l, flag);
	}
	leave(&o);
	if (flag)
		*flag = seen == FRAME;
	if (index)
		*index = seen == FRAME && at < n ? at : MPI_UNDEFINED;
	if (index && seen == FRAME && at == n)
		set_status(status, &of_nothing);
	return 1;
}

int gompi_short_wait(MPI_Request *request, MPI_Status *status) { return request && complete(1, request, NULL, NULL, status); }

int gompi_short_test(MPI_Request *request, int *flag, MPI_Status *status)
{
	return request && flag && complete(1, request, NULL, flag, status);
}

int gompi_short_waitall(int n, MPI_Request *rs, MPI_Status *statuses) { return complete(n, rs, NULL, NULL, statuses); }

int gompi_short_testall(int n, MPI_Request *rs, int *flag, MPI_Status *statuses)
{
	return flag && complete(n, rs, NULL, flag, statuses);
}

int gompi_short_waitany(int n, MPI_Request *rs, int *index, MPI_Status *status)
{
	return index && complete(n, rs, index, NULL, status);
}

int gompi_short_testany(int n, MPI_Request *rs, int *index, int *flag, MPI_Status *status)
{
	return index && flag && complete(n, rs, index, flag, status);
}
