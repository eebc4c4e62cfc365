//go:build linux && cgo

// UCP's workers, endpoints and active messages. What UCX reads or writes after a call has returned
// is memory of this file: messages and registered chunks. Its callbacks run only inside our own
// calls, and append what has arrived to a list that Go reads.

#include "shim.h"
#include "abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	HELLO = 1, SMALL, DATA,     // ids of active messages
	SLAB = 16,                  // chunks that are registered at a time
	CHUNKS_PER_PEER = 16,       // under way
	KEPT_TO_RECEIVE = 4,        // chunks that are not sent from
	SMALLS_PER_PEER = 256,
	PARTS_PER_PEER = 4,         // of puts, under way
	CLOSE_MS = 20,              // how long requests have to end once all is closed
};

struct gompi_chunk {
	gompi_chunk *next;
	gompi_peer *peer; // that it is on its way to
	char *bytes;
	void *memory; // its registration
	struct {
		gompi_prefix prefix;
		char header[GOMPI_HEADER];
	} head;
};

typedef struct slab {
	struct slab *next;
	char *bytes;
	void *memory;
	gompi_chunk chunks[SLAB];
} slab;

// A region is memory that puts go to and come from.
struct gompi_region {
	char *bytes;
	size_t size;
	void *memory;  // its registration, NULL if there is no such region
	uint32_t busy; // requests that read or write it
	int lost;      // one of them has failed: UCX may go on
};

typedef gompi_region region;

// A part of a put that is on its way from a region.
typedef struct part {
	struct part *next;
	gompi_peer *peer;
	region *from;
	struct {
		gompi_prefix prefix;
		gompi_put put;
	} head;
} part;

typedef struct worker worker;

struct gompi_peer {
	worker *w;
	uint32_t rank;
	void *endpoint;
	int failed;              // Go has been told
	int met;                 // UCX has completed or failed a request to it
	uint32_t stuck;          // requests that it will not, maybe
	uint64_t in, out;        // tokens; in is 0 until its frames are accepted
	uint32_t sent, received; // numbers of the next messages
	uint32_t smalls, chunks, parts; // on their way
	gompi_message *early;    // in order: those before them, or their data, are missing
};

struct worker {
	gompi_worker pub;
	uint32_t rank, size;
	void *context, *ucp;
	gompi_peer *peers;
	gompi_message *free; // not in use
	gompi_chunk *chunks; // not in use
	uint32_t idle;       // of those
	uint32_t usable;     // chunks that UCX has not failed with
	int refused;         // there was none to send from
	slab *slabs;
	part *parts; // not in use
	uint32_t starved; // messages of which the payload waits for a chunk
	region regions[GOMPI_REGIONS];
};

// Messages and chunks.

static gompi_message *take(worker *w) {
	gompi_message *m = w->free;
	if (m) w->free = m->next;
	else if (!(m = malloc(sizeof *m))) abort(); // as Go does
	memset(m, 0, offsetof(gompi_message, prefix));
	m->here = 1;
	return m;
}

// grow registers more chunks. It returns UCX's status.
static int grow(worker *w) {
	if (w->pub.slabs == 0) return ABI_NO_MEMORY;
	size_t size = (size_t)SLAB * GOMPI_CHUNK;
	slab *s = calloc(1, sizeof *s);
	char *bytes = s ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	if (bytes == MAP_FAILED) {
		free(s);
		return ABI_NO_MEMORY;
	}
	abi_memory p = {.mask = ABI_MEMORY_ADDRESS | ABI_MEMORY_SIZE, .address = bytes, .size = size};
	int status = p_ucp_mem_map(w->context, &p, &s->memory);
	if (status < 0) { // it costs too much to ask again and again
		w->pub.slabs = 0;
		munmap(bytes, size);
		free(s);
		return status;
	}
	w->pub.slabs--;
	s->bytes = bytes;
	s->next = w->slabs;
	w->slabs = s;
	for (int i = 0; i < SLAB; i++) {
		gompi_chunk *c = &s->chunks[i];
		*c = (gompi_chunk){.next = w->chunks, .bytes = bytes + (size_t)i * GOMPI_CHUNK, .memory = s->memory};
		w->chunks = c;
	}
	w->idle += SLAB;
	w->usable += SLAB;
	return ABI_OK;
}

static gompi_chunk *take_chunk(worker *w, int *status) {
	if (!w->chunks && (*status = grow(w)) < 0) return NULL;
	gompi_chunk *c = w->chunks;
	w->chunks = c->next;
	w->idle--;
	return c;
}

static void free_chunk(worker *w, gompi_chunk *c) {
	c->next = w->chunks;
	w->chunks = c;
	w->idle++;
}

static void free_message(worker *w, gompi_message *m) {
	if (m->chunk) free_chunk(w, m->chunk);
	if (m->lent) p_ucp_am_data_release(w->ucp, m->data);
	m->next = w->free;
	w->free = m;
}

static void free_done(worker *w) {
	for (gompi_message *m; (m = w->pub.done);) {
		w->pub.done = m->next;
		free_message(w, m);
	}
}

static void publish(worker *w, gompi_message *m) {
	m->next = NULL;
	if (w->pub.ready) w->pub.last->next = m;
	else w->pub.ready = m;
	w->pub.last = m;
}

// fail reports to Go, once, that nothing reaches a peer or comes from it any more.
static void fail(gompi_peer *p, int status) {
	p->met = 1;
	if (p->failed) return;
	p->failed = 1;
	gompi_message *m = take(p->w);
	m->prefix.from = p->rank;
	m->prefix.kind = GOMPI_KIND_FAILED;
	m->status = status;
	publish(p->w, m);
}

// Receiving.

// advance passes to Go the messages from p that are next in order. A rendezvous may complete after
// later messages have arrived.
static void advance(gompi_peer *p) {
	for (gompi_message *m; (m = p->early) && m->here && m->prefix.seq == p->received; p->received++) {
		p->early = m->next;
		publish(p->w, m);
	}
}

// arrive inserts m among the messages from p by its number.
static void arrive(gompi_peer *p, gompi_message *m) {
	gompi_message **at = &p->early;
	while (*at && (int32_t)((*at)->prefix.seq - m->prefix.seq) < 0) at = &(*at)->next;
	m->next = *at;
	*at = m;
	advance(p);
}

static void fetched(void *request, abi_status status, size_t size, void *arg) {
	gompi_message *m = arg;
	gompi_peer *p = m->peer;
	if (request) {
		p->w->pub.outstanding--;
		p_ucp_request_free(request);
	}
	m->here = 1;
	m->status = status;
	if (status < 0) { // UCX may still write to the chunk: it is not used again
		m->chunk = NULL;
		p->w->usable--;
	}
	if (m->prefix.token != p->in) free_message(p->w, m); // disconnected meanwhile
	else if (request) advance(p);
}

// fetch makes UCX store the payload of a rendezvous in a chunk. It returns UCX's status if there is
// none, and has done nothing.
static int fetch(worker *w, gompi_message *m) {
	int status;
	if (!(m->chunk = take_chunk(w, &status))) return status;
	void *descriptor = m->descriptor;
	m->descriptor = NULL;
	m->data = m->chunk->bytes;
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_MEMORY, .call.received = fetched, .arg = m, .memory = m->chunk->memory};
	abi_request r = p_ucp_am_recv_data_nbx(w->ucp, descriptor, m->data, m->size, &op);
	if (abi_pending(r)) w->pub.outstanding++;
	else fetched(NULL, abi_outcome(r), m->size, m);
	return ABI_OK;
}

// feed_peer is feed for what has come from p, in order. It returns UCX's status.
static int feed_peer(gompi_peer *p, int *n) {
	worker *w = p->w;
	for (gompi_message *m = p->early; m; m = m->next) {
		if (!m->descriptor) continue;
		int status = fetch(w, m);
		if (status < 0) return status;
		w->starved--;
		++*n;
	}
	return ABI_OK;
}

// feed fetches what waits for chunks, as far as there are some, and returns how much that is. A
// peer is given up only if no chunk will become free: nothing is under way, and Go has all that is here.
static int feed(worker *w) {
	int n = 0, status = ABI_OK;
	for (uint32_t i = 0; w->starved > 0 && i < w->size && status >= 0; i++) {
		gompi_peer *p = &w->peers[i];
		status = feed_peer(p, &n);
		advance(p);
		if (status < 0 && w->pub.outstanding == w->pub.stuck && !w->pub.ready) fail(p, status);
	}
	return n;
}

// find returns the region in which a part of a put has its place, NULL if there is none any more.
static region *find(worker *w, const gompi_message *m, size_t size, char **at) {
	gompi_put x;
	if (m->head_size < sizeof x) return NULL;
	memcpy(&x, m->head, sizeof x);
	region *r = &w->regions[x.place >> 36 & (GOMPI_REGIONS - 1)];
	uint64_t start = (x.place & ((1ull << 36) - 1)) - 1; // of place 0 beyond every region
	if (!r->memory || x.place >> 46 != (w->pub.recalls & ((1 << 18) - 1))) return NULL;
	if (start > r->size || x.offset > r->size - start || size > r->size - start - x.offset) return NULL;
	*at = r->bytes + start + x.offset;
	return r;
}

static void stored(void *request, abi_status status, size_t size, void *arg) {
	gompi_message *m = arg;
	gompi_peer *p = m->peer;
	m->region->busy--;
	if (request) {
		p->w->pub.outstanding--;
		p_ucp_request_free(request);
	}
	m->here = 1;
	m->status = status;
	if (status < 0) m->region->lost = 1;
	if (m->prefix.token != p->in) free_message(p->w, m); // disconnected meanwhile
	else if (request) advance(p);
}

// store stores the payload of a part of a put in its place. It returns what UCX is to be told.
static abi_status store(worker *w, gompi_message *m, void *data, size_t size, int rendezvous) {
	char *at;
	region *r = find(w, m, size, &at);
	if (!r) {
		m->dropped = 1; // UCX releases the data
		return ABI_OK;
	}
	if (!rendezvous) {
		memcpy(at, data, size);
		return ABI_OK;
	}
	m->region = r;
	m->here = 0;
	r->busy++;
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_MEMORY, .call.received = stored, .arg = m, .memory = r->memory};
	abi_request request = p_ucp_am_recv_data_nbx(w->ucp, data, at, size, &op);
	if (abi_pending(request)) w->pub.outstanding++;
	else stored(NULL, abi_outcome(request), size, m);
	return ABI_IN_PROGRESS;
}

// sender returns the peer that sent the message with prefix x, NULL if its token is not valid.
static gompi_peer *sender(worker *w, const gompi_prefix *x) {
	if (x->from >= w->size) return NULL;
	gompi_peer *p = &w->peers[x->from];
	return p->in && p->in == x->token && (int32_t)(x->seq - p->received) >= 0 ? p : NULL;
}

static abi_status on_message(void *arg, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *a) {
	worker *w = arg;
	gompi_prefix x;
	gompi_peer *p = NULL;
	int held = size == 0 || a->attr & (ABI_DATA | ABI_RENDEZVOUS);
	if (held && head_size >= sizeof x && head_size - sizeof x <= GOMPI_HEADER + GOMPI_SMALL) {
		memcpy(&x, head, sizeof x);
		if (size <= (x.kind == GOMPI_KIND_PUT ? GOMPI_PART : GOMPI_CHUNK)) p = sender(w, &x);
	}
	if (!p) {
		w->pub.strangers++;
		return ABI_OK;
	}
	gompi_message *m = take(w);
	m->prefix = x;
	m->peer = p;
	m->head_size = head_size - sizeof x;
	memcpy(m->head, (const char *)head + sizeof x, m->head_size);
	abi_status status = ABI_OK;
	if (x.kind == GOMPI_KIND_PUT) status = store(w, m, data, size, a->attr & ABI_RENDEZVOUS);
	else if (a->attr & ABI_RENDEZVOUS) {
		m->size = size;
		m->here = 0;
		m->descriptor = data;
		status = ABI_IN_PROGRESS;
		if (w->starved > 0 || fetch(w, m) < 0) w->starved++; // those that came before go first
	} else if (size > 0) {
		m->lent = 1;
		m->data = data;
		m->size = size;
		status = ABI_IN_PROGRESS;
	}
	arrive(p, m);
	return status;
}

static abi_status on_hello(void *arg, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *a) {
	worker *w = arg;
	if (head_size > GOMPI_HELLO || size > 0 || w->pub.hellos == GOMPI_HELLOS) {
		w->pub.strangers++;
		return ABI_OK;
	}
	gompi_message *m = take(w);
	m->prefix.from = 0;
	m->prefix.kind = GOMPI_KIND_HELLO;
	m->head_size = head_size;
	memcpy(m->head, head, head_size);
	w->pub.hellos++;
	publish(w, m);
	return ABI_OK;
}

// Sending.

static void on_failure(void *arg, void *endpoint, abi_status status) { fail(arg, status); }

int gompi_ucp_connect(gompi_worker *pub, uint32_t rank, const char *address, size_t size) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	char *copy = malloc(size); // UCX gets no address of Go's
	if (!copy) return ABI_NO_MEMORY;
	memcpy(copy, address, size);
	abi_endpoint_params params = {
		.mask = ABI_ENDPOINT_ADDRESS | ABI_ENDPOINT_ERROR_MODE | ABI_ENDPOINT_FAILED,
		.address = copy, .error_mode = ABI_ERRORS_PEER, .failed = on_failure, .arg = p,
	};
	int status = p_ucp_ep_create(w->ucp, &params, &p->endpoint);
	free(copy);
	if (status < 0) p->endpoint = NULL;
	return status;
}

void gompi_ucp_admit(gompi_worker *pub, uint32_t rank, uint64_t in, uint64_t out) {
	gompi_peer *p = &((worker *)pub)->peers[rank];
	p->in = in;
	p->out = out;
}

// completed notes the end of a request to a peer.
static void completed(gompi_peer *p) {
	p->met = 1;
	p->w->pub.outstanding--;
	if (p->stuck == 0) return;
	p->stuck--;
	p->w->pub.stuck--;
}

static void small_sent(void *request, abi_status status, void *arg) {
	gompi_message *m = arg;
	gompi_peer *p = m->peer;
	p->smalls--;
	completed(p);
	free_message(p->w, m);
	p_ucp_request_free(request);
}

// send_small sends size bytes from start, which lie in m.
static void send_small(gompi_peer *p, unsigned id, gompi_message *m, const void *start, size_t size) {
	m->peer = p;
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_FLAGS, .flags = ABI_EAGER, .call.sent = small_sent, .arg = m};
	abi_request r = p_ucp_am_send_nbx(p->endpoint, id, start, size, NULL, 0, &op);
	if (abi_pending(r)) {
		p->smalls++;
		p->w->pub.outstanding++;
		return;
	}
	p->met = 1;
	free_message(p->w, m);
	if (abi_outcome(r) < 0) fail(p, abi_outcome(r));
}

static void chunk_sent(void *request, abi_status status, void *arg) {
	gompi_chunk *c = arg;
	gompi_peer *p = c->peer;
	p->chunks--;
	completed(p);
	p_ucp_request_free(request);
	if (status >= 0) {
		free_chunk(p->w, c);
		return;
	}
	p->w->usable--; // the peer may still read the chunk: it is not used again
	fail(p, status);
}

static gompi_prefix prefix(gompi_peer *p, int kind) {
	return (gompi_prefix){.token = p->out, .from = p->w->rank, .seq = p->sent++, .kind = kind};
}

static int send_chunk(gompi_peer *p, int kind, const char *data, size_t size) {
	worker *w = p->w;
	if (p->chunks == CHUNKS_PER_PEER) return 0;
	int status = ABI_OK;
	if (w->idle <= KEPT_TO_RECEIVE && (status = grow(w)) < 0) { // else two that send to each other would wait for each other
		if (w->usable <= KEPT_TO_RECEIVE) fail(p, status); // there will be none
		w->refused = 1;
		return 0;
	}
	gompi_chunk *c = take_chunk(w, &status);
	c->peer = p;
	c->head.prefix = prefix(p, kind);
	memcpy(c->head.header, w->pub.header, GOMPI_HEADER);
	memcpy(c->bytes, data, size);
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_MEMORY, .call.sent = chunk_sent, .arg = c, .memory = c->memory};
	size_t head = sizeof c->head.prefix + (kind == GOMPI_KIND_FIRST ? GOMPI_HEADER : kind == GOMPI_KIND_PUT ? sizeof(gompi_put) : 0);
	abi_request r = p_ucp_am_send_nbx(p->endpoint, DATA, &c->head, head, c->bytes, size, &op);
	if (abi_pending(r)) {
		p->chunks++;
		w->pub.outstanding++;
		return 1;
	}
	free_chunk(w, c);
	if (abi_outcome(r) < 0) fail(p, abi_outcome(r));
	return 1;
}

int gompi_ucp_send(gompi_worker *pub, uint32_t rank, int kind, const char *data, size_t size) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	if (!p->endpoint || p->failed) return 1; // Go is told by a message
	if (size > pub->small || kind == GOMPI_KIND_PUT) return send_chunk(p, kind, data, size);
	if (p->smalls >= SMALLS_PER_PEER && kind != GOMPI_KIND_ACK && kind != GOMPI_KIND_STORED) return 0;
	gompi_message *m = take(w);
	m->prefix = prefix(p, kind);
	size_t head = kind == GOMPI_KIND_FIRST ? GOMPI_HEADER : 0;
	memcpy(m->head, pub->header, head);
	if (size > 0) memcpy(m->head + head, data, size);
	send_small(p, SMALL, m, &m->prefix, sizeof m->prefix + head + size);
	return 1;
}

int gompi_ucp_hello(gompi_worker *pub, uint32_t rank, const char *hello, size_t size) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	if (!p->endpoint || p->failed) return 1;
	if (p->smalls >= SMALLS_PER_PEER && !p->in) return 0; // else forged hellos could make us send any number
	gompi_message *m = take(w);
	memcpy(m->head, hello, size);
	send_small(p, HELLO, m, m->head, size);
	return 1;
}

// Regions.

int gompi_ucp_register(gompi_worker *pub, uint32_t id, char *bytes, size_t size) {
	worker *w = (worker *)pub;
	region *r = &w->regions[id];
	abi_memory p = {.mask = ABI_MEMORY_ADDRESS | ABI_MEMORY_SIZE, .address = bytes, .size = size};
	*r = (region){.bytes = bytes, .size = size};
	int status = p_ucp_mem_map(w->context, &p, &r->memory);
	if (status < 0) r->memory = NULL;
	return status;
}

int gompi_ucp_deregister(gompi_worker *pub, uint32_t id) {
	worker *w = (worker *)pub;
	region *r = &w->regions[id];
	if (r->busy > 0 || r->lost) return 0;
	p_ucp_mem_unmap(w->context, r->memory);
	r->memory = NULL;
	return 1;
}

static void free_part(part *x, abi_status status) {
	gompi_peer *p = x->peer;
	x->from->busy--;
	p->parts--;
	x->next = p->w->parts;
	p->w->parts = x;
	if (status >= 0) return;
	x->from->lost = 1;
	fail(p, status);
}

static void part_sent(void *request, abi_status status, void *arg) {
	part *x = arg;
	completed(x->peer);
	p_ucp_request_free(request);
	free_part(x, status);
}

int gompi_ucp_put(gompi_worker *pub, uint32_t rank, uint32_t id, const char *data, size_t size) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	if (!p->endpoint || p->failed) return 1; // Go is told by a message
	if (p->parts == PARTS_PER_PEER) return 0;
	part *x = w->parts;
	if (x) w->parts = x->next;
	else if (!(x = malloc(sizeof *x))) abort(); // as Go does
	x->peer = p;
	x->from = &w->regions[id];
	x->head.prefix = prefix(p, GOMPI_KIND_PUT);
	memcpy(&x->head.put, pub->header, sizeof x->head.put);
	p->parts++;
	x->from->busy++;
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_MEMORY, .call.sent = part_sent, .arg = x, .memory = x->from->memory};
	abi_request r = p_ucp_am_send_nbx(p->endpoint, DATA, &x->head, sizeof x->head, data, size, &op);
	if (abi_pending(r)) w->pub.outstanding++;
	else free_part(x, abi_outcome(r));
	return 1;
}

// Progress.

int gompi_ucp_poll(gompi_worker *pub) {
	worker *w = (worker *)pub;
	free_done(w);
	int n = feed(w), k;
	if (w->refused && w->idle > KEPT_TO_RECEIVE) { // that is news for the caller
		w->refused = 0;
		n++;
	}
	do n += k = p_ucp_worker_progress(w->ucp);
	while (k > 0 && !pub->ready && n < 64);
	return n;
}

// A completion queue of verbs does not report what arrived before it was armed: poll once more.
int gompi_ucp_arm(gompi_worker *pub) {
	return gompi_ucp_poll(pub) == 0 && !pub->ready && p_ucp_worker_arm(((worker *)pub)->ucp) == ABI_OK && gompi_ucp_poll(pub) == 0 &&
	       !pub->ready;
}

static void ended(void *request, abi_status status, void *arg) {
	((worker *)arg)->pub.outstanding--;
	p_ucp_request_free(request);
}

void gompi_ucp_flush(gompi_worker *pub) {
	worker *w = (worker *)pub;
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG, .call.sent = ended, .arg = w};
	for (uint32_t i = 0; i < w->size; i++) {
		gompi_peer *p = &w->peers[i];
		if (p->endpoint && p->met && !p->failed && abi_pending(p_ucp_ep_flush_nbx(p->endpoint, &op))) pub->outstanding++;
	}
}

char *gompi_ucp_info(gompi_worker *pub, uint32_t rank) {
	gompi_peer *p = &((worker *)pub)->peers[rank];
	char *text = NULL;
	size_t size;
	FILE *f = p->endpoint && !p->failed ? open_memstream(&text, &size) : NULL;
	if (!f) return NULL;
	p_ucp_ep_print_info(p->endpoint, f);
	fclose(f);
	return text;
}

// The end.

// disconnect drops messages from a peer that Go has not seen, and ends transfers to it.
void gompi_ucp_disconnect(gompi_worker *pub, uint32_t rank) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	p->in = 0;
	for (gompi_message *m; (m = p->early);) {
		p->early = m->next;
		if (m->descriptor) {
			p_ucp_am_data_release(w->ucp, m->descriptor);
			w->starved--;
		}
		if (m->here || m->descriptor) free_message(w, m); // else fetched frees it
	}
	if (!p->endpoint) return;
	if (!p->met) { // UCX over verbs asserts if it is to close what has not been connected yet
		p->failed = 1;
		pub->stuck += p->smalls - p->stuck;
		p->stuck = p->smalls;
		return;
	}
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG | ABI_OP_FLAGS, .flags = ABI_CLOSE_FORCE, .call.sent = ended, .arg = w};
	if (abi_pending(p_ucp_ep_close_nbx(p->endpoint, &op))) pub->outstanding++;
	p->endpoint = NULL;
}

static int64_t now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static void destroy(worker *w) {
	if (w->pub.address) p_ucp_worker_release_address(w->ucp, w->pub.address);
	if (w->ucp) p_ucp_worker_destroy(w->ucp);
	for (slab *s; (s = w->slabs);) {
		w->slabs = s->next;
		p_ucp_mem_unmap(w->context, s->memory);
		munmap(s->bytes, (size_t)SLAB * GOMPI_CHUNK);
		free(s);
	}
	for (int i = 0; i < GOMPI_REGIONS; i++) {
		if (w->regions[i].memory) p_ucp_mem_unmap(w->context, w->regions[i].memory);
	}
	for (part *x; (x = w->parts);) {
		w->parts = x->next;
		free(x);
	}
	if (w->context) p_ucp_cleanup(w->context);
	for (gompi_message *m; (m = w->free);) {
		w->free = m->next;
		free(m);
	}
	free(w->peers);
	free(w);
}

// UCX aborts the process if a worker is destroyed that has requests under way.
uint32_t gompi_ucp_close(gompi_worker *pub) {
	worker *w = (worker *)pub;
	for (uint32_t i = 0; i < w->size; i++) gompi_ucp_disconnect(pub, i);
	for (int64_t end = now_ms() + CLOSE_MS; pub->outstanding > pub->stuck && now_ms() < end;) p_ucp_worker_progress(w->ucp);
	free_done(w);
	for (gompi_message *m; (m = pub->ready);) {
		pub->ready = m->next;
		free_message(w, m);
	}
	if (pub->outstanding > 0) return pub->outstanding;
	destroy(w);
	return 0;
}

static int handle(worker *w, unsigned id, uint32_t flags, abi_status (*call)(void *, const void *, size_t, void *, size_t, const abi_arrival *)) {
	abi_handler h = {.mask = ABI_HANDLER_ALL, .id = id, .flags = ABI_WHOLE | flags, .call = call, .arg = w};
	return p_ucp_worker_set_am_recv_handler(w->ucp, &h);
}

// Where a peer has gone before it answered, UCX asserts after UD's time limit. Who has gone is
// known from elsewhere.
static int be_patient(void *config) {
	return getenv("UCX_UD_TIMEOUT") ? ABI_OK : p_ucp_config_modify(config, "UD_TIMEOUT", "600s");
}

static int init(worker *w, const char *tls, const char *devices, int memory, int verbs) {
	void *config;
	int s = p_ucp_config_read(NULL, NULL, &config);
	if (s < 0) return s;
	s = p_ucp_config_modify(config, "TLS", tls);
	if (s >= 0 && *devices) s = p_ucp_config_modify(config, "NET_DEVICES", devices);
	if (s >= 0 && memory) s = p_ucp_config_modify(config, "MM_ERROR_HANDLING", "y"); // else it is not used
	if (s >= 0 && verbs) s = be_patient(config);
	abi_params p = {
		.mask = ABI_PARAMS_FEATURES | ABI_PARAMS_ENDPOINTS, .features = ABI_FEATURE_AM | ABI_FEATURE_WAKEUP, .endpoints = w->size,
	};
	if (s >= 0) s = p_ucp_init_version(ABI_MAJOR, ABI_MINOR, &p, config, &w->context);
	p_ucp_config_release(config);
	return s;
}

static int start(worker *w) {
	abi_worker_params p = {.mask = ABI_WORKER_THREAD_MODE, .thread_mode = ABI_SERIALIZED};
	abi_worker_attr a = {.mask = ABI_ATTR_ADDRESS | ABI_ATTR_MOST_HEADER};
	int s;
	if ((s = p_ucp_worker_create(w->context, &p, &w->ucp)) < 0) return s;
	if ((s = handle(w, HELLO, 0, on_hello)) < 0) return s;
	if ((s = handle(w, SMALL, 0, on_message)) < 0) return s;
	if ((s = handle(w, DATA, ABI_PERSISTENT, on_message)) < 0) return s;
	if ((s = p_ucp_worker_query(w->ucp, &a)) < 0) return s;
	w->pub.address = a.address;
	w->pub.address_size = a.address_size;
	size_t overhead = sizeof(gompi_prefix) + GOMPI_HEADER;
	if (a.most_header < overhead || a.most_header < GOMPI_HELLO) return ABI_INVALID_PARAM;
	w->pub.small = a.most_header - overhead < GOMPI_SMALL ? a.most_header - overhead : GOMPI_SMALL;
	if ((s = p_ucp_worker_get_efd(w->ucp, &w->pub.fd)) < 0) return s;
	return grow(w);
}

const char *gompi_ucp_open(gompi_worker **out, uint32_t rank, uint32_t size, const char *tls, const char *devices, int memory, int verbs, uint32_t slabs) {
	worker *w = calloc(1, sizeof *w);
	w->rank = rank;
	w->size = size;
	w->pub.slabs = slabs;
	w->peers = calloc(size, sizeof *w->peers);
	for (uint32_t i = 0; i < size; i++) w->peers[i] = (gompi_peer){.w = w, .rank = i};
	int s = init(w, tls, devices, memory, verbs);
	if (s >= 0) s = start(w);
	if (s < 0) {
		destroy(w);
		return gompi_ucp_text(s);
	}
	*out = &w->pub;
	return NULL;
}
