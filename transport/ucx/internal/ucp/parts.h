// What the files of C here share: the parts of a worker, and its memory. What UCX reads or writes after
// a call has returned is memory of these: messages and registered chunks.
#pragma once

#include "shim.h"
#include "abi.h"

#include <stdlib.h>
#include <string.h>

enum {
	HELLO = 1, SMALL, DATA,     // ids of active messages
	SLAB = 16,                  // chunks that are registered at a time
	CHUNKS_PER_PEER = 16,       // under way
	KEPT_TO_RECEIVE = 4,        // chunks that are not sent from
	SMALLS_PER_PEER = 256,
	PARTS_PER_PEER = 4,         // of puts, under way
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

// A remote is memory of a peer, with UCX's key to it.
struct gompi_remote {
	gompi_remote *next;
	gompi_peer *peer;
	void *key;
};

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
	uint32_t accesses;              // under way
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
	gompi_remote *remotes;
};

// In receive.c: what UCX calls when a message has come, and what fetches the payloads that wait for
// chunks, as far as there are some. It returns how many those are.
abi_status gompi_ucp_on_message(void *worker, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *);
abi_status gompi_ucp_on_hello(void *worker, const void *head, size_t head_size, void *data, size_t size, const abi_arrival *);
int gompi_ucp_feed(worker *);

// In send.c: a chunk to send from, NULL if there is none now.
gompi_chunk *gompi_ucp_spare(gompi_peer *);

// In worker.c: grow registers more chunks. It returns UCX's status.
int gompi_ucp_grow(worker *);

// Messages and chunks.

static inline gompi_message *take(worker *w) {
	gompi_message *m = w->free;
	if (m) w->free = m->next;
	else if (!(m = malloc(sizeof *m))) abort(); // as Go does
	memset(m, 0, offsetof(gompi_message, prefix));
	m->here = 1;
	return m;
}

static inline gompi_chunk *take_chunk(worker *w, int *status) {
	if (!w->chunks && (*status = gompi_ucp_grow(w)) < 0) return NULL;
	gompi_chunk *c = w->chunks;
	w->chunks = c->next;
	w->idle--;
	return c;
}

static inline void free_chunk(worker *w, gompi_chunk *c) {
	c->next = w->chunks;
	w->chunks = c;
	w->idle++;
}

static inline void free_message(worker *w, gompi_message *m) {
	if (m->chunk) free_chunk(w, m->chunk);
	if (m->lent) p_ucp_am_data_release(w->ucp, m->data);
	m->next = w->free;
	w->free = m;
}

static inline void free_done(worker *w) {
	for (gompi_message *m; (m = w->pub.done);) {
		w->pub.done = m->next;
		free_message(w, m);
	}
}

static inline void publish(worker *w, gompi_message *m) {
	m->next = NULL;
	if (w->pub.ready) w->pub.last->next = m;
	else w->pub.ready = m;
	w->pub.last = m;
}

// fail reports to Go, once, that nothing reaches a peer or comes from it any more.
static inline void fail(gompi_peer *p, int status) {
	p->met = 1;
	if (p->failed) return;
	p->failed = 1;
	gompi_message *m = take(p->w);
	m->prefix.from = p->rank;
	m->prefix.kind = GOMPI_KIND_FAILED;
	m->status = status;
	publish(p->w, m);
}

// completed notes the end of a request to a peer.
static inline void completed(gompi_peer *p) {
	p->met = 1;
	p->w->pub.outstanding--;
	if (p->stuck == 0) return;
	p->stuck--;
	p->w->pub.stuck--;
}
