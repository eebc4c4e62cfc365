/*
 * libgompi.so: the functions of gompi.h, before the Go code that does the work. There is no Go here:
 * load.c says why.
 */
#include "shim.h"

/* What gompi_set_background has set, for each thread. */
static _Thread_local int background;
/* What gompi_set_place has. */
static _Thread_local int place;

/* A function that leaves its arguments to the core */
#define HANDED_ON(name, call, ...) int gompi_##name(__VA_ARGS__) { int err = enter(); return err ? err : core.call; }
HANDED_ON(abort, abort(status, (char *)(reason ? reason : ""), text), int status, const char *reason)
HANDED_ON(finalize, finalize(text), void)
HANDED_ON(set_timeout, set_timeout(c, milliseconds, text), gompi_comm c, int64_t milliseconds)
HANDED_ON(set_site, set_site((char *)(site ? site : ""), text), const char *site)
HANDED_ON(free, free(c, text), gompi_comm c)
HANDED_ON(hide, hide(c, text), gompi_comm c)
HANDED_ON(dealloc, dealloc(c, memory, text), gompi_comm c, void *memory)
HANDED_ON(dealloc_local, dealloc_local(memory, text), void *memory)

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

int gompi_place(const char *name, int *number) {
	int err = enter();

	if (!err && !name)
		err = null_argument("name", "where the program is");
	if (!err && !number)
		err = null_argument("place", "where to store an int");
	return err ? err : core.place((char *)name, number, text);
}

int gompi_set_place(int number) {
	int err = enter();

	if (!err)
		place = number;
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

int gompi_revoke(gompi_comm c, const char *reason) {
	int err = enter();

	if (!err && !reason)
		err = null_argument("reason", "a text");
	return err ? err : core.revoke(c, (char *)reason, text);
}

int gompi_alloc(gompi_comm c, size_t bytes, void **memory) {
	int err = enter();

	if (!err && !memory)
		err = null_argument("memory", "where to store an address");
	return err ? err : core.alloc(c, bytes, memory, text);
}

int gompi_alloc_local(size_t bytes, void **memory) {
	int err = enter();

	if (!err && !memory)
		err = null_argument("memory", "where to store an address");
	return err ? err : core.alloc_local(bytes, memory, text);
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
	call->place = place;
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
