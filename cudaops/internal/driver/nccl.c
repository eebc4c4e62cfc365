//go:build linux && cgo && !gompi_nocuda

// NCCL, opened at run time as the driver is. What is declared here, numbers included, is as NCCL 2.30 has it, and had the
// same binary form in 2.14: the first in which calls need not wait for other ranks, which may never come. A call that is
// under way has succeeded so far. All work in the context that is current.

#include "nccl.h"
#include "library.h"

#include <limits.h>

typedef void *handle;
typedef struct {
	char bytes[GOMPI_NCCL_ID];
} unique_id;

// The settings that 2.14 had. Newer libraries know by size and version that there are no others.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} config;

enum {
	IN_PROGRESS = 7,
	LEAST_VERSION = 21400, // 2.14.0
	BYTES = 1,             // ncclUint8
};
#define CONFIG_MAGIC 0xcafebeefu

#define REQUIRED(X) \
	X(ncclGetUniqueId, (unique_id *id)) \
	X(ncclCommInitRankConfig, (handle *comm, int size, unique_id id, int rank, config *c)) \
	X(ncclCommGetAsyncError, (handle comm, int *code)) \
	X(ncclCommAbort, (handle comm)) \
	X(ncclCommFinalize, (handle comm)) \
	X(ncclCommDestroy, (handle comm)) \
	X(ncclAllReduce, (uintptr_t send, uintptr_t recv, size_t count, int type, int op, handle comm, handle stream)) \
	X(ncclReduce, (uintptr_t send, uintptr_t recv, size_t count, int type, int op, int root, handle comm, handle stream)) \
	X(ncclBroadcast, (uintptr_t send, uintptr_t recv, size_t count, int type, int root, handle comm, handle stream)) \
	X(ncclReduceScatter, (uintptr_t send, uintptr_t recv, size_t count, int type, int op, handle comm, handle stream)) \
	X(ncclAllGather, (uintptr_t send, uintptr_t recv, size_t count, int type, handle comm, handle stream)) \
	X(ncclSend, (uintptr_t b, size_t count, int type, int peer, handle comm, handle stream)) \
	X(ncclRecv, (uintptr_t b, size_t count, int type, int peer, handle comm, handle stream)) \
	X(ncclGroupStart, (void)) \
	X(ncclGroupEnd, (void))

REQUIRED(DECLARE)

static const char *(*p_ncclGetErrorString)(int code), *(*p_ncclGetLastError)(handle comm);
static int version;

// gompi_nccl_load opens the library and returns what is wrong, or NULL.
const char *gompi_nccl_load(const char *library) {
	OPEN(library)
	int (*get)(int *) = (int (*)(int *))dlsym(lib, "ncclGetVersion");
	if (!get || get(&version)) version = 0;
	if (version < LEAST_VERSION) {
		int major = version < 10000 ? version / 1000 : version / 10000; // as 2.8 and older count
		snprintf(missing, sizeof missing, "%s is NCCL %d.%d.%d: want 2.14 or newer", library, major,
			version % (version < 10000 ? 1000 : 10000) / 100, version % 100);
		return missing;
	}
	REQUIRED(REQUIRE)
	*(void **)&p_ncclGetErrorString = dlsym(lib, "ncclGetErrorString");
	*(void **)&p_ncclGetLastError = dlsym(lib, "ncclGetLastError");
	return NULL;
}

// gompi_nccl_version returns 21803 for 2.18.3.
int gompi_nccl_version(void) { return version; }

const char *gompi_nccl_error_text(int code) {
	return p_ncclGetErrorString ? p_ncclGetErrorString(code) : "this NCCL has no description";
}

// gompi_nccl_last_error returns what NCCL said last, "" if nothing; comm may be 0.
const char *gompi_nccl_last_error(uintptr_t comm) {
	const char *s = p_ncclGetLastError ? p_ncclGetLastError((handle)comm) : NULL;
	return s ? s : "";
}

#define TRY(name, ...) \
	do { \
		r.call = #name; \
		r.code = p_##name(__VA_ARGS__); \
		if (r.code == IN_PROGRESS) r.code = 0; \
		if (r.code) return r; \
	} while (0)

static gompi_result get_id(void *id) {
	gompi_result r = {0};
	TRY(ncclGetUniqueId, id);
	return r;
}

gompi_result gompi_nccl_id(uintptr_t ctx, char *id) { return gompi_within(ctx, get_id, id); }

typedef struct {
	int size, rank;
	unique_id *id;
} joining;

static gompi_result join(void *args) {
	gompi_result r = {0};
	joining *j = args;
	handle comm = NULL;
	config c = {sizeof c, CONFIG_MAGIC, LEAST_VERSION, 0}; // 0: nothing blocks
	TRY(ncclCommInitRankConfig, &comm, j->size, *j->id, j->rank, &c);
	r.value = (uintptr_t)comm;
	return r;
}

gompi_result gompi_nccl_join(uintptr_t ctx, int size, char *id, int rank) {
	joining j = {size, rank, (unique_id *)id};
	return gompi_within(ctx, join, &j);
}

// state's value is 1 while something is under way.
static gompi_result state(void *comm) {
	gompi_result r = {0};
	int code = 0;
	TRY(ncclCommGetAsyncError, comm, &code);
	r.value = code == IN_PROGRESS;
	r.code = r.value ? 0 : code;
	return r;
}

gompi_result gompi_nccl_state(uintptr_t ctx, uintptr_t comm) { return gompi_within(ctx, state, (void *)comm); }

#define ENDING(name, function) \
	static gompi_result do_##name(void *comm) { \
		gompi_result r = {0}; \
		TRY(function, comm); \
		return r; \
	} \
	gompi_result gompi_nccl_##name(uintptr_t ctx, uintptr_t comm) { return gompi_within(ctx, do_##name, (void *)comm); }
ENDING(abort, ncclCommAbort)
ENDING(finalize, ncclCommFinalize)
ENDING(destroy, ncclCommDestroy)

typedef struct {
	handle comm, stream;
	int kind, type, op, root;
	uintptr_t send, recv;
	size_t count;
} collective;

static gompi_result start(void *args) {
	gompi_result r = {0};
	collective *c = args;
	switch (c->kind) {
	case GOMPI_ALL_REDUCE: TRY(ncclAllReduce, c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream); break;
	case GOMPI_REDUCE: TRY(ncclReduce, c->send, c->recv, c->count, c->type, c->op, c->root, c->comm, c->stream); break;
	case GOMPI_BROADCAST: TRY(ncclBroadcast, c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream); break;
	case GOMPI_REDUCE_SCATTER: TRY(ncclReduceScatter, c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream); break;
	case GOMPI_ALL_GATHER: TRY(ncclAllGather, c->send, c->recv, c->count, c->type, c->comm, c->stream); break;
	}
	return r;
}

gompi_result gompi_nccl_collective(uintptr_t ctx, uintptr_t comm, int kind, uintptr_t send, uintptr_t recv, size_t count,
	int type, int op, int root, uintptr_t stream) {
	collective c = {(handle)comm, (handle)stream, kind, type, op, root, send, recv, count};
	return gompi_within(ctx, start, &c);
}

typedef struct {
	handle comm, stream;
	gompi_part *parts;
	int n;
} exchanging;

static gompi_result put_parts(exchanging *x) {
	gompi_result r = {0};
	for (int i = 0; i < x->n; i++) {
		gompi_part *p = &x->parts[i];
		if (p->out_size) TRY(ncclSend, p->out, p->out_size, BYTES, i, x->comm, x->stream);
		if (p->in_size) TRY(ncclRecv, p->in, p->in_size, BYTES, i, x->comm, x->stream);
	}
	return r;
}

static gompi_result exchange(void *args) {
	gompi_result r = {0};
	TRY(ncclGroupStart);
	gompi_result put = put_parts(args);
	if (put.code) {
		p_ncclGroupEnd(); // or whatever comes next would belong to it
		return put;
	}
	TRY(ncclGroupEnd);
	return r;
}

gompi_result gompi_nccl_exchange(uintptr_t ctx, uintptr_t comm, gompi_part *parts, int n, uintptr_t stream) {
	exchanging x = {(handle)comm, (handle)stream, parts, n};
	return gompi_within(ctx, exchange, &x);
}
