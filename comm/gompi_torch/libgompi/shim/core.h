/* The interface between libgompi.so, which is C alone, and libgompi-core.so, which is Go. */
#ifndef GOMPI_CORE_H
#define GOMPI_CORE_H

#include "../gompi.h"

/* The room for the text of an error, with the 0 at its end. */
enum { GOMPI_TEXT = 2048 };

/* The collectives, by the numbers of package calls. */
enum {
	GOMPI_BARRIER = 1, GOMPI_BCAST = 2, GOMPI_REDUCE = 3, GOMPI_ALLREDUCE = 4,
	GOMPI_REDUCE_SCATTER = 5, GOMPI_REDUCE_SCATTER_BLOCK = 6, GOMPI_ALLGATHER = 7, GOMPI_ALLGATHERV = 8,
	GOMPI_GATHER = 9, GOMPI_SCATTER = 11, GOMPI_ALLTOALLV = 14
};

/* A collective. Fields that it lacks are 0. */
struct gompi_call {
	gompi_comm comm;
	int kind, type, op, root;
	int background, place; /* the settings of gompi_set_background and gompi_set_place */
	size_t n; /* elements of a block */
	const void *send;
	void *recv;
	const int64_t *send_counts, *recv_counts;
};

struct gompi_message {
	gompi_comm comm;
	void *buf;
	size_t n;
	int type, peer, tag;
};

/* The functions of the core. They return the codes of gompi.h, and write the text of an error to text. init
 * stores the inodes of gompi's sockets, by descriptor from 0 to n-1, in sockets. */
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
	int (*create_group)(gompi_comm c, int *ranks, size_t n, int tag, gompi_comm *result, char *text);
	int (*dup)(gompi_comm c, gompi_comm *result, char *text);
	int (*free)(gompi_comm c, char *text);
	int (*hide)(gompi_comm c, char *text);
	int (*revoke)(gompi_comm c, char *reason, char *text);
	int (*alloc_local)(size_t bytes, void **memory, char *text);
	int (*dealloc_local)(void *memory, char *text);
	int (*share)(gompi_comm c, char *text);
	int (*send)(struct gompi_message *m, char *text);
	int (*recv)(struct gompi_message *m, gompi_status *status, char *text);
	int (*isend)(struct gompi_message *m, gompi_request *request, char *text);
	int (*irecv)(struct gompi_message *m, gompi_request *request, char *text);
	int (*wait)(gompi_request *request, int64_t milliseconds, gompi_status *status, char *text);
	int (*test)(gompi_request *request, int *done, gompi_status *status, char *text);
	int (*probe)(struct gompi_message *m, gompi_status *status, char *text);
	int (*iprobe)(struct gompi_message *m, int *found, gompi_status *status, char *text);
	int (*collective)(struct gompi_call *call, char *text);
};

/* gompi_core_fill, the one symbol of the core that is looked up, fills in the table, and returns the version of
 * the core: a shim of another version must not use the table. ask calls the check of this thread. */
const char *gompi_core_fill(struct gompi_core *table, int64_t (*ask)(int64_t milliseconds));

#endif
