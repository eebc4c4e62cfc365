//go:build linux && cgo

// Access to regions of peers, in which these take no part. Each access is a message, which holds the
// bytes, or has a chunk for them: they are C's, as all that UCX is given.

#include "parts.h"

size_t gompi_ucp_key(gompi_worker *pub, uint32_t id, char *key, size_t room) {
	worker *w = (worker *)pub;
	void *packed;
	size_t size;
	if (p_ucp_rkey_pack(w->context, w->regions[id].memory, &packed, &size) < 0) return 0;
	if (size > room) size = 0;
	memcpy(key, packed, size);
	p_ucp_rkey_buffer_release(packed);
	return size;
}

gompi_remote *gompi_ucp_remote(gompi_worker *pub, uint32_t rank, const char *key) {
	worker *w = (worker *)pub;
	gompi_peer *p = &w->peers[rank];
	void *rkey;
	if (!p->endpoint || p->failed || p_ucp_ep_rkey_unpack(p->endpoint, key, &rkey) < 0) return NULL;
	gompi_remote *r = malloc(sizeof *r);
	if (!r) abort(); // as Go does
	*r = (gompi_remote){.next = w->remotes, .peer = p, .key = rkey};
	return w->remotes = r;
}

void gompi_ucp_forget(gompi_worker *pub, gompi_remote *r) {
	gompi_remote **at = &((worker *)pub)->remotes;
	while (*at != r) at = &(*at)->next;
	*at = r->next;
	p_ucp_rkey_destroy(r->key);
	free(r);
}

// take_access returns what holds size bytes of an access to p, NULL if too much is under way.
static gompi_message *take_access(gompi_peer *p, size_t size, uint64_t number) {
	if (p->accesses >= (size > GOMPI_SMALL ? CHUNKS_PER_PEER : SMALLS_PER_PEER)) return NULL;
	gompi_chunk *c = size > GOMPI_SMALL ? gompi_ucp_spare(p) : NULL;
	if (size > GOMPI_SMALL && !c) return NULL;
	gompi_message *m = take(p->w);
	m->prefix = (gompi_prefix){.token = number, .from = p->rank, .kind = GOMPI_KIND_DONE};
	m->peer = p;
	m->chunk = c;
	return m;
}

static char *bytes(gompi_message *m) { return m->chunk ? m->chunk->bytes : m->head; }

static void over(gompi_message *m, abi_status status) {
	gompi_peer *p = m->peer;
	if (status < 0) { // UCX may still read or write m and its chunk: they are not used again
		if (m->chunk) p->w->usable--;
		fail(p, status);
	} else if (m->prefix.token) publish(p->w, m);
	else free_message(p->w, m);
}

static void accessed(void *request, abi_status status, void *arg) {
	gompi_message *m = arg;
	m->peer->accesses--;
	completed(m->peer);
	p_ucp_request_free(request);
	over(m, status);
}

// begun notes that UCX has begun an access.
static void begun(gompi_message *m, abi_request r) {
	gompi_peer *p = m->peer;
	if (abi_pending(r)) {
		p->accesses++;
		p->w->pub.outstanding++;
		return;
	}
	over(m, abi_outcome(r));
}

static abi_operation operation(gompi_message *m) {
	abi_operation op = {.mask = ABI_OP_CALL | ABI_OP_ARG, .call.sent = accessed, .arg = m};
	if (m->chunk) {
		op.mask |= ABI_OP_MEMORY;
		op.memory = m->chunk->memory;
	}
	return op;
}

int gompi_ucp_write(gompi_remote *to, uint64_t at, const char *data, size_t size) {
	gompi_peer *p = to->peer;
	if (!p->endpoint || p->failed) return 1; // Go is told by a message
	gompi_message *m = take_access(p, size, 0);
	if (!m) return 0;
	memcpy(bytes(m), data, size);
	abi_operation op = operation(m);
	begun(m, p_ucp_put_nbx(p->endpoint, bytes(m), size, at, to->key, &op));
	return 1;
}

int gompi_ucp_read(gompi_remote *from, uint64_t at, size_t size, uint64_t number) {
	gompi_peer *p = from->peer;
	if (!p->endpoint || p->failed) return 1;
	gompi_message *m = take_access(p, size, number);
	if (!m) return 0;
	m->data = bytes(m);
	m->size = size;
	abi_operation op = operation(m);
	begun(m, p_ucp_get_nbx(p->endpoint, m->data, size, at, from->key, &op));
	return 1;
}

void gompi_ucp_settle(gompi_worker *pub, uint32_t rank, uint64_t number) {
	gompi_peer *p = &((worker *)pub)->peers[rank];
	if (!p->endpoint || p->failed) return;
	gompi_message *m = take(p->w);
	m->prefix = (gompi_prefix){.token = number, .from = rank, .kind = GOMPI_KIND_DONE};
	m->peer = p;
	abi_operation op = operation(m);
	begun(m, p_ucp_ep_flush_nbx(p->endpoint, &op));
}
