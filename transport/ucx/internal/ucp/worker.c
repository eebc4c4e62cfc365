//go:build linux && cgo

// UCP's workers. What UCX reads or writes after a call has returned is memory of parts.h. Its
// callbacks run only inside our own calls, and append what has arrived to a list that Go reads.

#include "parts.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { CLOSE_MS = 20 }; // how long requests have to end once all is closed

int gompi_ucp_grow(worker *w) {
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

int gompi_ucp_poll(gompi_worker *pub) {
	worker *w = (worker *)pub;
	free_done(w);
	int n = gompi_ucp_feed(w), k;
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
	while (w->remotes) gompi_ucp_forget(&w->pub, w->remotes);
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

// Where a peer has gone before it answered, UCX asserts after UD's time limit. Who has gone is known from elsewhere.
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
		.mask = ABI_PARAMS_FEATURES | ABI_PARAMS_ENDPOINTS, .features = ABI_FEATURE_AM | ABI_FEATURE_RMA | ABI_FEATURE_WAKEUP, .endpoints = w->size,
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
	if ((s = handle(w, HELLO, 0, gompi_ucp_on_hello)) < 0) return s;
	if ((s = handle(w, SMALL, 0, gompi_ucp_on_message)) < 0) return s;
	if ((s = handle(w, DATA, ABI_PERSISTENT, gompi_ucp_on_message)) < 0) return s;
	if ((s = p_ucp_worker_query(w->ucp, &a)) < 0) return s;
	w->pub.address = a.address;
	w->pub.address_size = a.address_size;
	size_t overhead = sizeof(gompi_prefix) + GOMPI_HEADER;
	if (a.most_header < overhead || a.most_header < GOMPI_HELLO) return ABI_INVALID_PARAM;
	w->pub.small = a.most_header - overhead < GOMPI_SMALL ? a.most_header - overhead : GOMPI_SMALL;
	if ((s = p_ucp_worker_get_efd(w->ucp, &w->pub.fd)) < 0) return s;
	return gompi_ucp_grow(w);
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
