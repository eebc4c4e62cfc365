/* What libgompi.so, which is C alone, and libgompi-core.so, which is Go, know of each other. */
#ifndef GOMPI_CORE_H
#define GOMPI_CORE_H

#include "../gompi.h"

/* The room for the text of an error, with the 0 at its end. */
enum { GOMPI_TEXT = 2048 };

/* The collectives, by the numbers of package calls: a test compares them. */
enum {
	GOMPI_BARRIER = 1, GOMPI_BCAST = 2, GOMPI_REDUCE = 3, GOMPI_ALLREDUCE = 4,
	GOMPI_REDUCE_SCATTER = 5, GOMPI_REDUCE_SCATTER_BLOCK = 6, GOMPI_ALLGATHER = 7, GOMPI_ALLGATHERV = 8,
	GOMPI_GATHER = 9, GOMPI_GATHERV = 10, GOMPI_SCATTER = 11, GOMPI_SCATTERV = 12,
	GOMPI_ALLTOALL = 13, GOMPI_ALLTOALLV = 14, GOMPI_SCAN = 16, GOMPI_EXSCAN = 17
};

/* A collective. What it does not have is 0. */
struct gompi_call {
	gompi_comm comm;
	int kind, type, op, root;
	int background; /* as gompi_set_background says */
	int place; /* as gompi_set_place says */
	size_t n; /* elements of a block */
	const void *send;
	void *recv;
	const int64_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

struct gompi_message {
	gompi_comm comm;
	void *buf;
	size_t n;
	int type, peer, tag;
};

/*
 * The functions of the core. They return what those of gompi.h do, and write the text of an error to
 * text. Pointers to results are not NULL. init waits for the other ranks for that many milliseconds, 0
 * for as long as it takes, and stores the inodes of gompi's sockets, by descriptor from 0 to n-1, in
 * sockets.
 */
struct gompi_core {
	void (*prepare_thread)(void); /* before the others, in each thread */
	int (*init)(int64_t milliseconds, uint64_t *sockets, size_t n, char *text);
	int (*finalize)(char *text);
	int (*abort)(int status, char *reason, char *text);
	int (*rank)(gompi_comm c, int *rank, char *text);
	int (*size)(gompi_comm c, int *size, char *text);
	int (*set_timeout)(gompi_comm c, int64_t milliseconds, char *text);
	int (*set_site)(char *site, char *text);
	int (*place)(char *name, int *place, char *text);
	int (*split)(gompi_comm c, int color, int key, gompi_comm *result, char *text);
	int (*create_group)(gompi_comm c, int *ranks, size_t n, int tag, gompi_comm *result, char *text);
	int (*dup)(gompi_comm c, gompi_comm *result, char *text);
	int (*free)(gompi_comm c, char *text);
	int (*hide)(gompi_comm c, char *text);
	int (*revoke)(gompi_comm c, char *reason, char *text);
	int (*alloc)(gompi_comm c, size_t bytes, void **memory, char *text);
	int (*dealloc)(gompi_comm c, void *memory, char *text);
	int (*alloc_local)(size_t bytes, void **memory, char *text);
	int (*dealloc_local)(void *memory, char *text);
	int (*send)(struct gompi_message *m, char *text);
	int (*recv)(struct gompi_message *m, gompi_status *status, char *text);
	int (*isend)(struct gompi_message *m, gompi_request *request, char *text);
	int (*irecv)(struct gompi_message *m, gompi_request *request, char *text);
	int (*wait)(gompi_request *request, int64_t milliseconds, gompi_status *status, char *text); /* 0: no limit */
	int (*test)(gompi_request *request, int *done, gompi_status *status, char *text);
	int (*probe)(struct gompi_message *m, gompi_status *status, char *text);
	int (*iprobe)(struct gompi_message *m, int *found, gompi_status *status, char *text);
	int (*collective)(struct gompi_call *call, char *text);
};

/*
 * gompi_core_fill, the one symbol of the core that is looked up, fills in the table, and is told what
 * asks the check of gompi_set_check, on the thread that has set it. It returns the version of the core:
 * a shim of another version must not use the table.
 */
const char *gompi_core_fill(struct gompi_core *table, int64_t (*ask)(int64_t milliseconds));

#endif
