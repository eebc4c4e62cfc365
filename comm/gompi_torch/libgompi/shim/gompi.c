/* libgompi.so: the functions of gompi.h, before the Go code that does the work. There is no Go here: see load.c. */
#include "shim.h"

/* The settings of gompi_set_background and gompi_set_place, for each thread. */
static _Thread_local int background;
static _Thread_local int place;

/* A function that leaves its arguments to the core. */
#define HANDED_ON(name, call, ...) int gompi_##name(__VA_ARGS__) { int err = enter(); return err ? err : core.call; }
HANDED_ON(finalize, finalize(text), void)
HANDED_ON(abort, abort(status, (char *)reason, text), int status, const char *reason)
HANDED_ON(rank, rank(c, rank, text), gompi_comm c, int *rank)
HANDED_ON(size, size(c, size, text), gompi_comm c, int *size)
HANDED_ON(set_timeout, set_timeout(c, milliseconds, text), gompi_comm c, int64_t milliseconds)
HANDED_ON(set_site, set_site((char *)site, text), const char *site)
HANDED_ON(place, place((char *)name, number, text), const char *name, int *number)
HANDED_ON(create_group, create_group(c, (int *)ranks, n, tag, result, text),
          gompi_comm c, const int *ranks, size_t n, int tag, gompi_comm *result)
HANDED_ON(dup, dup(c, result, text), gompi_comm c, gompi_comm *result)
HANDED_ON(free, free(c, text), gompi_comm c)
HANDED_ON(hide, hide(c, text), gompi_comm c)
HANDED_ON(revoke, revoke(c, (char *)reason, text), gompi_comm c, const char *reason)
HANDED_ON(alloc_local, alloc_local(bytes, memory, text), size_t bytes, void **memory)
HANDED_ON(dealloc_local, dealloc_local(memory, text), void *memory)
HANDED_ON(share, share(c, text), gompi_comm c)
HANDED_ON(wait, wait(request, milliseconds, status, text),
          gompi_request *request, int64_t milliseconds, gompi_status *status)
HANDED_ON(test, test(request, done, status, text), gompi_request *request, int *done, gompi_status *status)

void gompi_set_place(int number) { place = number; }
void gompi_set_background(int yes) { background = yes; }

/* A function of the messages with rank peer and a tag. */
#define MESSAGE(name, call, buf, n, type, ...) int gompi_##name(__VA_ARGS__) { \
	struct gompi_message m = {c, (void *)(buf), n, (int)(type), peer, tag}; \
	int err = enter(); \
	return err ? err : core.call; \
}
MESSAGE(send, send(&m, text), buf, n, type,
        gompi_comm c, const void *buf, size_t n, gompi_type type, int peer, int tag)
MESSAGE(recv, recv(&m, status, text), buf, n, type,
        gompi_comm c, void *buf, size_t n, gompi_type type, int peer, int tag, gompi_status *status)
MESSAGE(isend, isend(&m, request, text), buf, n, type,
        gompi_comm c, const void *buf, size_t n, gompi_type type, int peer, int tag, gompi_request *request)
MESSAGE(irecv, irecv(&m, request, text), buf, n, type,
        gompi_comm c, void *buf, size_t n, gompi_type type, int peer, int tag, gompi_request *request)
MESSAGE(probe, probe(&m, status, text), NULL, 0, 0, gompi_comm c, int peer, int tag, gompi_status *status)
MESSAGE(iprobe, iprobe(&m, found, status, text), NULL, 0, 0,
        gompi_comm c, int peer, int tag, int *found, gompi_status *status)

/* ---- Collectives ---- */

/* A collective, with its arguments as fields. */
#define COLLECTIVE(name, ...) collective(&(struct gompi_call){.kind = name, .comm = c, __VA_ARGS__})

static int collective(struct gompi_call *call) {
	int err = enter();

	call->background = background;
	call->place = place;
	return err ? err : core.collective(call, text);
}

int gompi_barrier(gompi_comm c) { return COLLECTIVE(GOMPI_BARRIER); }

int gompi_bcast(gompi_comm c, void *buf, size_t n, gompi_type type, int root) {
	return COLLECTIVE(GOMPI_BCAST, .recv = buf, .n = n, .type = (int)type, .root = root);
}

int gompi_reduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op, int root) {
	return COLLECTIVE(GOMPI_REDUCE, .send = send, .recv = recv, .n = n, .type = (int)type, .op = (int)op, .root = root);
}

int gompi_allreduce(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return COLLECTIVE(GOMPI_ALLREDUCE, .send = send, .recv = recv, .n = n, .type = (int)type, .op = (int)op);
}

int gompi_reduce_scatter_block(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, gompi_op op) {
	return COLLECTIVE(GOMPI_REDUCE_SCATTER_BLOCK, .send = send, .recv = recv, .n = n, .type = (int)type, .op = (int)op);
}

int gompi_reduce_scatter(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type,
                         gompi_op op) {
	return COLLECTIVE(GOMPI_REDUCE_SCATTER, .send = send, .recv = recv, .send_counts = counts, .type = (int)type,
	                  .op = (int)op);
}

int gompi_allgather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type) {
	return COLLECTIVE(GOMPI_ALLGATHER, .send = send, .recv = recv, .n = n, .type = (int)type);
}

int gompi_allgatherv(gompi_comm c, const void *send, void *recv, const int64_t *counts, gompi_type type) {
	return COLLECTIVE(GOMPI_ALLGATHERV, .send = send, .recv = recv, .recv_counts = counts, .type = (int)type);
}

int gompi_gather(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root) {
	return COLLECTIVE(GOMPI_GATHER, .send = send, .recv = recv, .n = n, .type = (int)type, .root = root);
}

int gompi_scatter(gompi_comm c, const void *send, void *recv, size_t n, gompi_type type, int root) {
	return COLLECTIVE(GOMPI_SCATTER, .send = send, .recv = recv, .n = n, .type = (int)type, .root = root);
}

int gompi_alltoallv(gompi_comm c, const void *send, const int64_t *send_counts, void *recv, const int64_t *recv_counts,
                    gompi_type type) {
	return COLLECTIVE(GOMPI_ALLTOALLV, .send = send, .send_counts = send_counts, .recv = recv,
	                  .recv_counts = recv_counts, .type = (int)type);
}
