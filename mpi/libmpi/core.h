/* What a face, libmpi.so or libmpi_abi.so, and the core, libgompi-mpi.so, know of each other. The core is in Go and
 * opened by MPI_Init or MPI_Session_init. Numbers that cross are the core's: those of the binary interface of MPI 5.0,
 * and for handles small integers. A face converts them to and from its own. */
#ifndef GOMPI_MPI_CORE_H
#define GOMPI_MPI_CORE_H
#include <stdint.h>
#include "shared.h"

typedef int64_t gompi_word;

enum {
	GOMPI_BAD = -99, /* a rank or tag that is none, and a handle that is not valid */
	GOMPI_WIDE_BIT = 62, /* of the address of an array of 64-bit integers where others are of int */
	GOMPI_LOCK_EXCLUSIVE = 301,
	GOMPI_LOCK_SHARED = 302,
	GOMPI_FIRST_CODE = 0x4000, /* of error codes and classes that programs add */
};

enum gompi_kind {
	KIND_comm = 1,
	KIND_datatype,
	KIND_op,
	KIND_group,
	KIND_request,
	KIND_errhandler,
	KIND_info,
	KIND_message,
	KIND_session,
	KIND_win,
	KIND_file,
	KINDS,
	KIND_keyval = KINDS /* has no handle */
};

/* The arrays whose length a communicator says. */
enum { GOMPI_PEERS, GOMPI_INDEGREE, GOMPI_OUTDEGREE };

/* The language of a function of the program is in its upper byte, 0 for C. */
#define LANGUAGE(fn) ((int)((fn) >> 56))
#define FUNCTION(fn) ((fn) & ((1LL << 56) - 1))

/* Where a rank is counted: its area, which begins with the counters, and the ranks in the job by local rank. */
struct gompi_stats {
	struct gompi_counters *counters; /* NULL if nothing was counted yet */
	const int32_t *worlds;
};

/* A face, for the core. Functions of the program are called through it. */
struct gompi_face {
	int32_t proc_null, any_source, undefined;
	int32_t bsend_overhead, last_code;
	gompi_word buffer_automatic;
	int32_t max_object_name, max_error_string, max_processor_name, max_info_key, max_info_val;
	int32_t win_unified, win_flavor_create; /* other flavors are behind that */
	int32_t distribute_block, distribute_cyclic, distribute_none, distribute_default;
	void (*call_op)(gompi_word fn, gompi_word in, gompi_word inout, int32_t n, int32_t op, int32_t datatype);
	int32_t (*copy_attr)(gompi_word fn, int32_t kind, int32_t id, int32_t keyval, gompi_word extra, gompi_word value,
	                     gompi_word *copy, int32_t *flag);
	int32_t (*delete_attr)(gompi_word fn, int32_t kind, int32_t id, int32_t keyval, gompi_word value, gompi_word extra);
	void (*call_errhandler)(gompi_word fn, int32_t errhandler, int32_t kind, int32_t object, int32_t code);
	int32_t (*query)(gompi_word fn, gompi_word extra, struct gompi_status *status);
	int32_t (*release)(gompi_word fn, gompi_word extra);
	int32_t (*cancel)(gompi_word fn, gompi_word extra, int32_t complete);
	/* Counts bytes that a call has moved at the call that this thread is in, and a message if peer is not negative. */
	void (*count)(int64_t bytes, int64_t peer, int64_t tag);
};

/* The core, for a face. Functions return error classes and codes. */
struct gompi_mpi_core {
	void (*use)(const struct gompi_face *face); /* first */
	int32_t (*init)(void);
	int32_t (*finalize)(void);
	int32_t (*running)(void); /* whether MPI or a session has begun and not ended */
	void (*exit)(void);       /* at the end of the process */
	int32_t (*call)(int32_t function, gompi_word *arguments);
	int32_t (*length)(int32_t what, int32_t comm);
	int32_t (*unsupported)(int32_t comm, const char *name); /* comm is GOMPI_BAD if the function has none */
	int32_t (*null)(int32_t function, int32_t object, const char *name); /* the argument is NULL */
	/* The functions of an object get a language, LANGUAGE(fn): they are given back to the face with it. */
	void (*set_language)(int32_t kind, int32_t object, int32_t language);
	/* Attributes as Fortran sets and gets them. */
	int32_t (*set_integer)(int32_t kind, int32_t object, int32_t keyval, gompi_word value);
	int32_t (*integer)(int32_t kind, int32_t object, int32_t keyval, gompi_word *value, int32_t *flag);
	struct gompi_lease *(*lease)(void); /* after init; NULL if there is none */
	void (*wake)(int32_t local);        /* of a peer that sleeps */
	/* After init: whether calls are counted from now on, and where. They are for a tool, and with -stats. */
	int32_t (*stats)(int32_t tool, struct gompi_stats *s);
};

/* What libgompi-mpi.so exports. It returns its GOMPI_SHARED_NUMBER, and fills core only if the face's is the same. */
uint64_t gompi_mpi_fill(struct gompi_mpi_core *core, uint64_t number);

#endif
