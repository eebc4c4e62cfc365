//go:build linux && cgo

// Receiving: messages are passed to Go in the order of each sender, and puts stored in their places.

#include "parts.h"

// advance passes to Go the messages from p that are next in order. A rendezvous may complete after later messages have arrived.
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

// fetch has UCX store the payload of a rendezvous in a chunk. It returns UCX's status if there is none, and has done nothing.
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

// feed_peer is gompi_ucp_feed for what has come from p, in order. It returns UCX's status.
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

// A peer is given up only if no chunk will become free: nothing is under way, and Go has all that is here.
int gompi_ucp_feed(worker *w) {
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

abi_status gompi_ucp_on_message(void *arg, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *a) {
	worker *w = arg;
	gompi_prefix x;
	gompi_peer *p = NULL;
	int held = size == 0 || a->attr & (ABI_DATA | ABI_RENDEZVOUS);
	if (held && head_size >= sizeof x && head_size - sizeof x <= GOMPI_HEADER + GOMPI_SMALL) {
		memcpy(&x, head, sizeof x);
		if (size <= (x.kind == GOMPI_KIND_PUT ? GOMPI_PART : GOMPI_CHUNK)) p = sender(w, &x);
	}
	if (!p) {
		w->pub.unauthenticated++;
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

abi_status gompi_ucp_on_hello(void *arg, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *a) {
	worker *w = arg;
	if (head_size > GOMPI_HELLO || size > 0 || w->pub.hellos == GOMPI_HELLOS) {
		w->pub.unauthenticated++;
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
