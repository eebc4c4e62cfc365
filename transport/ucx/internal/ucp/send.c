//go:build linux && cgo

// Sending: messages, and puts from regions.

#include "parts.h"

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

gompi_chunk *gompi_ucp_spare(gompi_peer *p) {
	worker *w = p->w;
	int status = ABI_OK;
	if (w->idle <= KEPT_TO_RECEIVE && (status = gompi_ucp_grow(w)) < 0) { // else two that send to each other would wait for each other
		if (w->usable <= KEPT_TO_RECEIVE) fail(p, status); // there will be none
		w->refused = 1;
		return NULL;
	}
	return take_chunk(w, &status);
}

static int send_chunk(gompi_peer *p, int kind, const char *data, size_t size) {
	worker *w = p->w;
	if (p->chunks == CHUNKS_PER_PEER) return 0;
	gompi_chunk *c = gompi_ucp_spare(p);
	if (!c) return 0;
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
