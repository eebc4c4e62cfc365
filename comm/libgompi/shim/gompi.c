/*
 * libgompi.so: the functions of gompi.h, before the Go code that does the work.
 *
 * There is no Go here. A process that has Go's runtime loaded has its threads, and a child made by
 * fork() has the runtime without them: whatever it calls there waits for ever. So Go comes with
 * libgompi-core.so, which gompi_init opens; a child made before that is free to do so itself, and
 * one made later is refused before Go is entered.
 */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core.h"

#ifndef GOMPI_VERSION
#define GOMPI_VERSION "unknown"
#endif

/* The core, and whether it is there: it is not used before that, and never closed. */
static struct gompi_core core;
static atomic_int opened;

/* Held while the core is opened, which a fork waits for. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* This process is a child, and the core in it is the parent's. */
static int forked;

/* The text of the last error of each thread. */
static _Thread_local char text[GOMPI_TEXT];

/* What gompi_set_check has set, for each thread. */
static _Thread_local gompi_check check;
static _Thread_local void *check_arg;

/* What gompi_set_background has set, for each thread. */
static _Thread_local int background;

static char core_path[PATH_MAX];

/* The inodes of the core's sockets, by descriptor, 0 where there is none. The core stores them. */
enum { SOCKETS = 1 << 16 };
static uint64_t sockets[SOCKETS];

/*
 * Closes what a child has of its parent's connections. While it lived, the peers would not hear of
 * the parent's death. A descriptor that has become something else meanwhile has another inode.
 */
static void close_sockets(void) {
	struct stat st;
	int fd;

	for (fd = 0; fd < SOCKETS; fd++) {
		uint64_t inode = __atomic_load_n(&sockets[fd], __ATOMIC_RELAXED);

		if (inode && !fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == inode)
			close(fd);
	}
}

static void before_fork(void) { pthread_mutex_lock(&opening); }

static void in_parent(void) { pthread_mutex_unlock(&opening); }

static void in_child(void) {
	pthread_mutex_unlock(&opening);
	if (atomic_load(&opened) && !forked) {
		forked = 1;
		close_sockets();
	}
}

/*
 * Where the core is: beside this library, whose path is looked up at once, since it may be relative
 * to a folder that the program leaves.
 */
__attribute__((constructor)) static void loaded(void) {
	Dl_info self;
	char path[PATH_MAX];
	char *slash;

	pthread_atfork(before_fork, in_parent, in_child);
	if (!dladdr((void *)loaded, &self) || !realpath(self.dli_fname, path))
		return;
	slash = strrchr(path, '/');
	snprintf(core_path, sizeof core_path, "%.*s/libgompi-core.so", (int)(slash - path), path);
}

__attribute__((format(printf, 2, 3))) static int fail(int code, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return code;
}

static int null_argument(const char *name, const char *want) {
	return fail(GOMPI_ERR_ARGUMENT, "%s is NULL: want %s", name, want);
}

static int not_in_a_child(void) {
	if (!forked)
		return GOMPI_OK;
	return fail(GOMPI_ERR_FORKED,
	            "this process is a child, made by fork() after its parent called gompi_init: "
	            "the rank is the parent");
}

/* Every function but gompi_init begins with it. */
static int enter(void) {
	int err = not_in_a_child();

	if (!err && !atomic_load(&opened))
		return fail(GOMPI_ERR_STATE, "gompi_init has not been called");
	return err;
}

/* Reports whether the notes of a module say that Go's linker made it. */
static int has_go_note(const char *at, size_t size) {
	const size_t padded = 3;

	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		const char *name = at + sizeof *note;
		size_t names = (note->n_namesz + padded) & ~padded;
		size_t length = sizeof *note + names + ((note->n_descsz + padded) & ~padded);

		if (length > size)
			return 0;
		if (note->n_namesz == 4 && !memcmp(name, "Go\0\0", 4))
			return 1;
		at += length;
		size -= length;
	}
	return 0;
}

/* Stores the path of a module that has Go's runtime in *found, and ends the search. */
static int is_go(struct dl_phdr_info *module, size_t size, void *found) {
	int i;

	(void)size;
	for (i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &module->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && has_go_note((const char *)module->dlpi_addr + p->p_vaddr, p->p_memsz)) {
			*(const char **)found = *module->dlpi_name ? module->dlpi_name : "the program";
			return 1;
		}
	}
	return 0;
}

/* Asks the check of this thread. What that calls asks none. */
static int64_t ask(int64_t milliseconds) {
	gompi_check asked = check;
	int64_t again;

	if (!asked)
		return 0;
	check = NULL;
	again = asked(check_arg, milliseconds);
	check = asked;
	return again;
}

/* Opens the core if it is not open. The lock is held. */
static int open_core(void) {
	const char *(*fill)(struct gompi_core *, int64_t (*)(int64_t));
	const char *version, *other;
	void *library;

	if (atomic_load(&opened))
		return GOMPI_OK;
	if (dl_iterate_phdr(is_go, &other))
		return fail(GOMPI_ERR_LIBRARY,
		            "%s is written in Go, too, and a process can have Go's runtime once: "
		            "libgompi brings its own", other);
	/* Go cannot be unloaded. */
	library = dlopen(core_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!library)
		return fail(GOMPI_ERR_LIBRARY, "cannot open the other half of libgompi.so: %s", dlerror());
	/* Whatever it turns out to be, Go's threads may be there now. */
	atomic_store(&opened, 1);
	*(void **)&fill = dlsym(library, "gompi_core_fill");
	if (!fill)
		return fail(GOMPI_ERR_LIBRARY, "%s is not of gompi: %s", core_path, dlerror());
	version = fill(&core, ask);
	if (strcmp(version, GOMPI_VERSION) != 0)
		return fail(GOMPI_ERR_LIBRARY, "%s is of version %s: want %s, as libgompi.so", core_path, version, GOMPI_VERSION);
	return GOMPI_OK;
}

int gompi_init(void) {
	int err = not_in_a_child();

	if (err)
		return err;
	pthread_mutex_lock(&opening);
	err = open_core();
	pthread_mutex_unlock(&opening);
	return err ? err : core.init(sockets, SOCKETS, text);
}

int gompi_finalize(void) {
	int err = enter();

	return err ? err : core.finalize(text);
}

int gompi_abort(int status, const char *reason) {
	int err = enter();

	return err ? err : core.abort(status, (char *)(reason ? reason : ""), text);
}

const char *gompi_error(void) { return text; }

const char *gompi_version(void) { return GOMPI_VERSION; }

int gompi_rank(gompi_comm c, int *rank) {
	int err = enter();

	if (!err && !rank)
		err = null_argument("rank", "where to store an int");
	return err ? err : core.rank(c, rank, text);
}

int gompi_size(gompi_comm c, int *size) {
	int err = enter();

	if (!err && !size)
		err = null_argument("size", "where to store an int");
	return err ? err : core.size(c, size, text);
}

int gompi_set_timeout(gompi_comm c, int64_t milliseconds) {
	int err = enter();

	return err ? err : core.set_timeout(c, milliseconds, text);
}

int gompi_set_check(gompi_check function, void *arg) {
	int err = enter();

	if (!err) {
		check = function;
		check_arg = arg;
	}
	return err;
}

int gompi_set_background(int yes) {
	int err = enter();

	if (!err)
		background = yes;
	return err;
}

int gompi_split(gompi_comm c, int color, int key, gompi_comm *result) {
	int err = enter();

	if (!err && !result)
		err = null_argument("result", "where to store a communicator");
	return err ? err : core.split(c, color, key, result, text);
}

int gompi_create_group(gompi_comm c, const int *ranks, size_t n, int tag, gompi_comm *result) {
	int err = enter();

	if (!err && !ranks)
		err = null_argument("ranks", "the numbers of the members");
	if (!err && !result)
		err = null_argument("result", "where to store a communicator");
	return err ? err : core.create_group(c, (int *)ranks, n, tag, result, text);
}

int gompi_dup(gompi_comm c, gompi_comm *result) {
	int err = enter();

	if (!err && !result)
		err = null_argument("result", "where to store a communicator");
	return err ? err : core.dup(c, result, text);
}

int gompi_free(gompi_comm c) {
	int err = enter();

	return err ? err : core.free(c, text);
}

int gompi_alloc(gompi_comm c, size_t bytes, void **memory) {
	int err = enter();

	if (!err && !memory)
		err = null_argument("memory", "where to store an address");
	return err ? err : core.alloc(c, bytes, memory, text);
}

int gompi_dealloc(gompi_comm c, void *memory) {
	int err = enter();

	return err ? err : core.dealloc(c, memory, text);
}

int gompi_alloc_local(size_t bytes, void **memory) {
	int err = enter();

	if (!err && !memory)
		err = null_argument("memory", "where to store an address");
	return err ? err : core.alloc_local(bytes, memory, text);
}

int gompi_dealloc_local(void *memory) {
	int err = enter();

	return err ? err : core.dealloc_local(memory, text);
}

/* ---- Messages ---- */

int gompi_send(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag) {
	struct gompi_message m = {c, (void *)buf, n, (int)type, to, tag};
	int err = enter();

	return err ? err : core.send(&m, text);
}

int gompi_recv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_status *status) {
	struct gompi_message m = {c, buf, n, (int)type, from, tag};
	gompi_status unwanted;
	int err = enter();

	return err ? err : core.recv(&m, status ? status : &unwanted, text);
}

int gompi_isend(gompi_comm c, const void *buf, size_t n, gompi_type type, int to, int tag, gompi_request *request) {
	struct gompi_message m = {c, (void *)buf, n, (int)type, to, tag};
	int err = enter();

	if (!err && !request)
		err = null_argument("request", "where to store a request");
	return err ? err : core.isend(&m, request, text);
}

int gompi_irecv(gompi_comm c, void *buf, size_t n, gompi_type type, int from, int tag, gompi_request *request) {
	struct gompi_message m = {c, buf, n, (int)type, from, tag};
	int err = enter();

	if (!err && !request)
		err = null_argument("request", "where to store a request");
	return err ? err : core.irecv(&m, request, text);
}

static int wait_for(gompi_request *request, int64_t milliseconds, gompi_status *status) {
	gompi_status unwanted;
	int err = enter();

	if (!err && !request)
		err = null_argument("request", "the address of a request");
	return err ? err : core.wait(request, milliseconds, status ? status : &unwanted, text);
}

int gompi_wait(gompi_request *request, gompi_status *status) { return wait_for(request, 0, status); }

int gompi_wait_for(gompi_request *request, int64_t milliseconds, gompi_status *status) {
	if (milliseconds < 1)
		return fail(GOMPI_ERR_ARGUMENT, "milliseconds is %lld: want 1 or more", (long long)milliseconds);
	return wait_for(request, milliseconds, status);
}

int gompi_test(gompi_request *request, int *done, gompi_status *status) {
	gompi_status unwanted;
	int err = enter();

	if (!err && !request)
		err = null_argument("request", "the address of a request");
	if (!err && !done)
		err = null_argument("done", "where to store an int");
	return err ? err : core.test(request, done, status ? status : &unwanted, text);
}

int gompi_probe(gompi_comm c, int from, int tag, gompi_status *status) {
	struct gompi_message m = {.comm = c, .peer = from, .tag = tag};
	gompi_status unwanted;
	int err = enter();

	return err ? err : core.probe(&m, status ? status : &unwanted, text);
}

int gompi_iprobe(gompi_comm c, int from, int tag, int *found, gompi_status *status) {
	struct gompi_message m = {.comm = c, .peer = from, .tag = tag};
	gompi_status unwanted;
	int err = enter();

	if (!err && !found)
		err = null_argument("found", "where to store an int");
	return err ? err : core.iprobe(&m, found, status ? status : &unwanted, text);
}

/* ---- Collectives ---- */

static int collective(struct gompi_call *call) {
	int err = enter();

	call->background = background;
	return err ? err : core.collective(call, text);
}

int gompi_barrier(gompi_comm c) {
	struct gompi_call call = {.kind = GOMPI_BARRIER, .comm = c};

	return collective(&call);
}

int gompi_bcast(gompi_comm c, void *buf, size_t n, gompi_type type, int root) {
	struct gompi_call call = {
		.kind = GOMPI_BCAST, .comm = c, .recv = buf, .n = n, .type = (int)type, .root = root,
	};

	return collective(&call);
}

int gompi_reduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op, int root) {
	struct gompi_call call = {
		.kind = GOMPI_REDUCE, .comm = c, .send = send, .recv = recv, .n = n,
		.type = (int)type, .op = (int)op, .root = root,
	};

	return collective(&call);
}

/* What has an operator and blocks of n elements, and no root. */
static int combine(int kind, gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	struct gompi_call call = {
		.kind = kind, .comm = c, .send = send, .recv = recv, .n = n, .type = (int)type, .op = (int)op,
	};

	return collective(&call);
}

int gompi_allreduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return combine(GOMPI_ALLREDUCE, c, send, recv, n, type, op);
}

int gompi_reduce_scatter_block(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return combine(GOMPI_REDUCE_SCATTER_BLOCK, c, send, recv, n, type, op);
}

int gompi_scan(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return combine(GOMPI_SCAN, c, send, recv, n, type, op);
}

int gompi_exscan(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return combine(GOMPI_EXSCAN, c, send, recv, n, type, op);
}

int gompi_reduce_scatter(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type, gompi_op op) {
	struct gompi_call call = {
		.kind = GOMPI_REDUCE_SCATTER, .comm = c, .send = send, .recv = recv, .send_counts = counts,
		.type = (int)type, .op = (int)op,
	};

	return collective(&call);
}

/* What copies blocks of n elements. */
static int exchange(int kind, gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root) {
	struct gompi_call call = {
		.kind = kind, .comm = c, .send = send, .recv = recv, .n = n, .type = (int)type, .root = root,
	};

	return collective(&call);
}

int gompi_allgather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type) {
	return exchange(GOMPI_ALLGATHER, c, send, recv, n, type, 0);
}

int gompi_gather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root) {
	return exchange(GOMPI_GATHER, c, send, recv, n, type, root);
}

int gompi_scatter(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root) {
	return exchange(GOMPI_SCATTER, c, send, recv, n, type, root);
}

int gompi_alltoall(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type) {
	return exchange(GOMPI_ALLTOALL, c, send, recv, n, type, 0);
}

int gompi_allgatherv(gompi_comm c, const void *send, void *recv, const int64_t *counts, const int64_t *displs, gompi_type type) {
	struct gompi_call call = {
		.kind = GOMPI_ALLGATHERV, .comm = c, .send = send, .recv = recv,
		.recv_counts = counts, .recv_displs = displs, .type = (int)type,
	};

	return collective(&call);
}

int gompi_gatherv(gompi_comm c, const void *send, size_t n, void *recv, const int64_t *counts, const int64_t *displs, gompi_type type, int root) {
	struct gompi_call call = {
		.kind = GOMPI_GATHERV, .comm = c, .send = send, .n = n, .recv = recv,
		.recv_counts = counts, .recv_displs = displs, .type = (int)type, .root = root,
	};

	return collective(&call);
}

int gompi_scatterv(gompi_comm c, const void *send, const int64_t *counts, const int64_t *displs, void *recv, size_t n, gompi_type type, int root) {
	struct gompi_call call = {
		.kind = GOMPI_SCATTERV, .comm = c, .send = send, .send_counts = counts, .send_displs = displs,
		.recv = recv, .n = n, .type = (int)type, .root = root,
	};

	return collective(&call);
}

int gompi_alltoallv(gompi_comm c, const void *send, const int64_t *send_counts, const int64_t *send_displs,
                    void *recv, const int64_t *recv_counts, const int64_t *recv_displs, gompi_type type) {
	struct gompi_call call = {
		.kind = GOMPI_ALLTOALLV, .comm = c, .send = send, .send_counts = send_counts,
		.send_displs = send_displs, .recv = recv, .recv_counts = recv_counts,
		.recv_displs = recv_displs, .type = (int)type,
	};

	return collective(&call);
}
