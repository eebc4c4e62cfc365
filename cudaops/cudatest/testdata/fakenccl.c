// NCCL without a GPU, for tests, on the fake CUDA driver beside it: for goroutine ranks
// of one process, and for processes. Whoever makes an id runs a hub, a thread to which
// each rank connects: it hears of a collective from all, and answers all.
//
// As in NCCL, nothing waits for other ranks: calls return ncclInProgress, a thread puts
// the work on the stream later, and a rank whose peers do not come waits on its stream
// until it aborts. The fake is stricter in that it refuses a call while another is under
// way, a current device that is not the communicator's, memory that is not its, a
// blocking communicator, and ranks that disagree.
//
// The environment, read when used: FAKENCCL_VERSION (21803), FAKENCCL_HANG (n: this
// rank's n-th collective never ends; 0: nor does joining), FAKENCCL_ASYNC (n=code: with
// its n-th collective the communicator has that error), FAKENCCL_TOLD (a descriptor: who
// hangs or loses the hub writes a byte to it), FAKENCCL_NOTICE (1: who loses the
// hub has ncclRemoteError, else it notices nothing), and the fake driver's FAKECUDA_FAIL
// for what calls answer.

#include "fakenccl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default"))) int

typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} config;

static long setting(const char *name, long otherwise) {
	const char *s = getenv(name);
	return s && *s ? strtol(s, NULL, 0) : otherwise;
}

static char last_error[256];

static int wrong(int code, const char *why) {
	snprintf(last_error, sizeof last_error, "%s", why);
	return code;
}

// ---- the fake driver

static struct {
	pthread_once_t once;
	int (*put)(void *stream, int (*f)(void *), void *arg);
	char *(*place)(uintptr_t addr, size_t n);
	int (*current)(void), (*injected)(const char *name);
	int (*get_context)(void **ctx), (*set_context)(void *ctx);
} cuda = {PTHREAD_ONCE_INIT};

static void find_driver(void) {
	const char *path = getenv("GOMPI_LIBCUDA");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
	if (!lib) abort();
	*(void **)&cuda.put = dlsym(lib, "fake_put");
	*(void **)&cuda.place = dlsym(lib, "fake_place");
	*(void **)&cuda.current = dlsym(lib, "fake_current");
	*(void **)&cuda.injected = dlsym(lib, "fake_injected");
	*(void **)&cuda.get_context = dlsym(lib, "cuCtxGetCurrent");
	*(void **)&cuda.set_context = dlsym(lib, "cuCtxSetCurrent");
}

#define MAY_FAIL \
	do { \
		pthread_once(&cuda.once, find_driver); \
		int code = cuda.injected(__func__); \
		if (code) return wrong(code, "the test wants it"); \
	} while (0)

// ---- the ranks

typedef struct {
	unique_id id;
	int fd, rank, size, device, collectives;
	void *ctx;
	atomic_int state;   // what ncclCommGetAsyncError says
	atomic_int aborted;
	atomic_int threads; // of this rank: at work, or waiting for others
} comm;

// An operation is a collective on its way to the stream and on it.
typedef struct {
	comm *c;
	void *stream;
	int number;
	message m;
	uintptr_t send, recv;
	uint64_t recv_bytes;
	struct part {
		uintptr_t out, in;
		uint64_t out_bytes, in_bytes;
	} *parts; // of an exchange
} operation;

static int wait_for_abort(comm *c) {
	int told = setting("FAKENCCL_TOLD", -1);
	if (told >= 0 && !atomic_load(&c->aborted) && write(told, "h", 1) < 0) perror("FAKENCCL_TOLD");
	while (!atomic_load(&c->aborted)) usleep(100);
	return OK;
}

// lose is what becomes of a rank whose hub does not answer.
static int lose(comm *c) {
	if (!atomic_load(&c->aborted) && setting("FAKENCCL_NOTICE", 0)) atomic_store(&c->state, REMOTE_ERROR);
	return wait_for_abort(c);
}

// ask sends a message with data and returns the answer's, or NULL.
static char *ask(comm *c, message *m, void *data, answer *a) {
	if (transfer(c->fd, m, sizeof *m, 1, &c->aborted) || transfer(c->fd, data, m->bytes, 1, &c->aborted)) return NULL;
	if (transfer(c->fd, a, sizeof *a, 0, &c->aborted)) return NULL;
	char *b = malloc(a->bytes + 1);
	if (transfer(c->fd, b, a->bytes, 0, &c->aborted)) {
		free(b);
		return NULL;
	}
	return b;
}

// gather copies what an operation sends.
static char *gather(operation *o) {
	char *data = malloc(o->m.bytes + 1), *at = data;
	if (o->m.what.kind != EXCHANGE) {
		if (o->m.bytes) memcpy(data, cuda.place(o->send, o->m.bytes), o->m.bytes);
		return data;
	}
	uint64_t *sizes = (uint64_t *)data;
	int n = o->c->size;
	at += 16 * n;
	for (int i = 0; i < n; i++) {
		struct part *p = &o->parts[i];
		sizes[i] = p->out_bytes, sizes[n + i] = p->in_bytes;
		if (p->out_bytes) memcpy(at, cuda.place(p->out, p->out_bytes), p->out_bytes);
		at += p->out_bytes;
	}
	return data;
}

// scatter stores what an operation has received.
static void scatter(operation *o, char *got) {
	if (o->m.what.kind != EXCHANGE) {
		if (o->recv_bytes) memcpy(cuda.place(o->recv, o->recv_bytes), got, o->recv_bytes);
		return;
	}
	for (int i = 0; i < o->c->size; i++) {
		struct part *p = &o->parts[i];
		if (p->in_bytes) memcpy(cuda.place(p->in, p->in_bytes), got, p->in_bytes);
		got += p->in_bytes;
	}
}

// injure makes an operation hang or fail, if the test wants it.
static int injure(operation *o) {
	if (setting("FAKENCCL_HANG", -1) == o->number) return 1;
	const char *s = getenv("FAKENCCL_ASYNC");
	char *end = NULL;
	if (!s || strtol(s, &end, 10) != o->number || *end != '=') return 0;
	atomic_store(&o->c->state, atoi(end + 1));
	return 1;
}

// run does an operation, on the stream's thread.
static int run(void *arg) {
	operation *o = arg;
	comm *c = o->c;
	cuda.set_context(c->ctx);
	if (injure(o)) {
		wait_for_abort(c);
	} else {
		answer a;
		char *data = gather(o), *got = ask(c, &o->m, data, &a);
		if (!got) {
			lose(c);
		} else if (a.code) {
			atomic_store(&c->state, a.code);
			wait_for_abort(c);
		} else {
			scatter(o, got);
		}
		free(got);
		free(data);
	}
	free(o->parts);
	free(o);
	atomic_fetch_sub(&c->threads, 1);
	return OK;
}

// put puts an operation on its stream, a little later than it was called.
static void *put(void *arg) {
	operation *o = arg;
	comm *c = o->c;
	usleep(rand() % 300);
	cuda.set_context(c->ctx);
	cuda.put(o->stream, run, o);
	int under_way = IN_PROGRESS;
	atomic_compare_exchange_strong(&c->state, &under_way, OK);
	return NULL;
}

static int submit(operation *o) {
	comm *c = o->c;
	o->m.rank = c->rank, o->m.what.size = c->size;
	o->number = ++c->collectives;
	atomic_fetch_add(&c->threads, 1);
	atomic_store(&c->state, IN_PROGRESS);
	start_thread(put, o);
	return IN_PROGRESS;
}

// check refuses a call that a communicator is not ready for.
static int check(comm *c) {
	if (atomic_load(&c->aborted)) return wrong(INVALID_ARGUMENT, "the communicator has ended");
	if (atomic_load(&c->state)) return wrong(INVALID_USAGE, "another call is under way, or has failed");
	if (cuda.current() != c->device) return wrong(INVALID_USAGE, "the current device is not the communicator's");
	return OK;
}

static int in_memory(uintptr_t addr, uint64_t n) { return !n || cuda.place(addr, n); }

// begin starts a collective of sent and received bytes.
static int begin(comm *c, int kind, uintptr_t send, uint64_t sent, uintptr_t recv, uint64_t received, uint64_t count, int type, int op,
	int root, void *stream) {
	int code = check(c);
	if (code) return code;
	if (type < 0 || type >= TYPES || op < 0 || op >= OPS || root < 0 || root >= c->size)
		return wrong(INVALID_ARGUMENT, "no such type, operator or root");
	if (!in_memory(send, sent) || !in_memory(recv, received)) return wrong(INVALID_ARGUMENT, "memory is not the device's");
	operation *o = calloc(1, sizeof *o);
	o->c = c, o->stream = stream, o->send = send, o->recv = recv, o->recv_bytes = received, o->m.bytes = sent;
	o->m.what.kind = kind, o->m.what.type = type, o->m.what.op = op, o->m.what.root = root, o->m.what.count = count;
	return submit(o);
}

static void *meet(void *arg) {
	comm *c = arg;
	message m = {.rank = c->rank};
	answer a = {0};
	m.what.kind = JOIN, m.what.size = c->size;
	socklen_t n;
	struct sockaddr_un to = address(&c->id, &n);
	char *got = NULL;
	if (setting("FAKENCCL_HANG", -1) == 0) {
		wait_for_abort(c);
	} else if (connect(c->fd, (struct sockaddr *)&to, n) || !(got = ask(c, &m, NULL, &a))) {
		lose(c);
	} else {
		atomic_store(&c->state, a.code);
	}
	free(got);
	atomic_fetch_sub(&c->threads, 1);
	return NULL;
}

static void *say_bye(void *arg) {
	comm *c = arg;
	message m = {.rank = c->rank};
	answer a = {0};
	m.what.kind = BYE, m.what.size = c->size;
	char *got = ask(c, &m, NULL, &a);
	if (got) {
		atomic_store(&c->state, OK);
	} else {
		lose(c);
	}
	free(got);
	atomic_fetch_sub(&c->threads, 1);
	return NULL;
}

// ---- NCCL's functions

static const size_t widths[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

__attribute__((visibility("default"))) const char *ncclGetErrorString(int code) {
	static const char *const texts[] = {
		"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage",
		"remote process exited or there was a network error", "NCCL operation in progress",
	};
	return code >= 0 && code <= IN_PROGRESS ? texts[code] : "unknown result code";
}

__attribute__((visibility("default"))) const char *ncclGetLastError(void *c) { return last_error; }

API ncclGetVersion(int *version) {
	*version = setting("FAKENCCL_VERSION", 21803);
	return OK;
}

API ncclGetUniqueId(unique_id *id) {
	MAY_FAIL;
	static atomic_int ids;
	memset(id, 0, sizeof *id);
	snprintf(id->name, sizeof id->name, "fakenccl-%d-%d", getpid(), atomic_fetch_add(&ids, 1));
	socklen_t n;
	struct sockaddr_un at = address(id, &n);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&at, n) || listen(listener, 64)) return wrong(SYSTEM_ERROR, strerror(errno));
	start_hub(listener);
	return OK;
}

API ncclCommInitRankConfig(comm **out, int size, unique_id id, int rank, config *s) {
	MAY_FAIL;
	if (!s || s->size != sizeof *s || s->magic != 0xcafebeef || s->version != 21400 || s->blocking)
		return wrong(INVALID_ARGUMENT, "not the settings of 2.14, nonblocking");
	if (rank < 0 || rank >= size) return wrong(INVALID_ARGUMENT, "no such rank");
	comm *c = calloc(1, sizeof *c);
	c->id = id, c->rank = rank, c->size = size, c->device = cuda.current();
	if (c->device < 0 || cuda.get_context(&c->ctx)) return wrong(CUDA_ERROR, "no current device");
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	atomic_store(&c->state, IN_PROGRESS);
	atomic_fetch_add(&c->threads, 1);
	start_thread(meet, c);
	*out = c;
	return IN_PROGRESS;
}

API ncclCommGetAsyncError(comm *c, int *code) {
	MAY_FAIL;
	*code = atomic_load(&c->state);
	return OK;
}

// What has ended stays, so that its use is found.
static int end(comm *c) {
	atomic_store(&c->aborted, 1);
	while (atomic_load(&c->threads)) usleep(100);
	close(c->fd);
	return OK;
}

API ncclCommAbort(comm *c) {
	MAY_FAIL;
	return end(c);
}

API ncclCommFinalize(comm *c) {
	MAY_FAIL;
	int code = check(c);
	if (code) return code;
	atomic_store(&c->state, IN_PROGRESS);
	atomic_fetch_add(&c->threads, 1);
	start_thread(say_bye, c);
	return IN_PROGRESS;
}

API ncclCommDestroy(comm *c) {
	MAY_FAIL;
	int code = check(c);
	return code ? code : end(c);
}

API ncclAllReduce(uintptr_t send, uintptr_t recv, size_t n, int type, int op, comm *c, void *stream) {
	MAY_FAIL;
	size_t bytes = n * widths[type];
	return begin(c, ALL_REDUCE, send, bytes, recv, bytes, n, type, op, 0, stream);
}

API ncclReduce(uintptr_t send, uintptr_t recv, size_t n, int type, int op, int root, comm *c, void *stream) {
	MAY_FAIL;
	size_t bytes = n * widths[type];
	return begin(c, REDUCE, send, bytes, recv, c->rank == root ? bytes : 0, n, type, op, root, stream);
}

API ncclBroadcast(uintptr_t send, uintptr_t recv, size_t n, int type, int root, comm *c, void *stream) {
	MAY_FAIL;
	size_t bytes = n * widths[type];
	return begin(c, BROADCAST, send, c->rank == root ? bytes : 0, recv, bytes, bytes, type, 0, root, stream);
}

API ncclReduceScatter(uintptr_t send, uintptr_t recv, size_t n, int type, int op, comm *c, void *stream) {
	MAY_FAIL;
	size_t bytes = n * widths[type];
	return begin(c, REDUCE_SCATTER, send, bytes * c->size, recv, bytes, n, type, op, 0, stream);
}

API ncclAllGather(uintptr_t send, uintptr_t recv, size_t n, int type, comm *c, void *stream) {
	MAY_FAIL;
	size_t bytes = n * widths[type];
	return begin(c, ALL_GATHER, send, bytes, recv, bytes * c->size, n, type, 0, 0, stream);
}

static _Thread_local struct {
	int open;
	operation *o;
} grouped;

API ncclGroupStart(void) {
	MAY_FAIL;
	if (grouped.open++) return wrong(INVALID_USAGE, "groups in groups are not for the fake");
	return OK;
}

API ncclGroupEnd(void) {
	operation *o = grouped.o;
	if (!grouped.open) return wrong(INVALID_USAGE, "no group has started");
	grouped.open = 0, grouped.o = NULL;
	MAY_FAIL;
	return o ? submit(o) : OK;
}

// part returns a rank's part of the exchange that is being grouped.
static int part(comm *c, int peer, uintptr_t addr, uint64_t n, void *stream, struct part **p) {
	int code = check(c);
	if (code) return code;
	if (!grouped.open || peer < 0 || peer >= c->size || !in_memory(addr, n))
		return wrong(INVALID_ARGUMENT, "outside a group, no such peer, or memory is not the device's");
	if (!grouped.o) {
		operation *o = calloc(1, sizeof *o);
		o->c = c, o->stream = stream, o->parts = calloc(c->size, sizeof *o->parts);
		o->m.what.kind = EXCHANGE, o->m.bytes = 16 * c->size;
		grouped.o = o;
	}
	*p = &grouped.o->parts[peer];
	return OK;
}

API ncclSend(uintptr_t b, size_t n, int type, int peer, comm *c, void *stream) {
	MAY_FAIL;
	struct part *p;
	int code = part(c, peer, b, n * widths[type], stream, &p);
	if (code) return code;
	p->out = b, p->out_bytes = n * widths[type], grouped.o->m.bytes += p->out_bytes;
	return OK;
}

API ncclRecv(uintptr_t b, size_t n, int type, int peer, comm *c, void *stream) {
	MAY_FAIL;
	struct part *p;
	int code = part(c, peer, b, n * widths[type], stream, &p);
	if (code) return code;
	p->in = b, p->in_bytes = n * widths[type];
	return OK;
}
