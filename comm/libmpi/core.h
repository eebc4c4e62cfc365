/* What a face, libmpi.so or libmpi_abi.so, and the core, libgompi-mpi.so, know of each other. The core is in Go and
 * opened by MPI_Init or MPI_Session_init. Numbers that cross are the core's: those of the binary interface of MPI 5.0,
 * and for handles small integers. A face converts them to and from its own. */
#ifndef GOMPI_MPI_CORE_H
#define GOMPI_MPI_CORE_H
#include <stdint.h>
#include "lease.h"
#include "stats.h"

typedef int64_t gompi_word;

struct gompi_status {
	int32_t source, tag;
	int32_t error;     /* -1: leave the caller's */
	int32_t cancelled; /* -1: leave all of the caller's */
	int64_t bytes;
};

enum {
	GOMPI_ANY_SOURCE = -1,
	GOMPI_ANY_TAG = -2,
	GOMPI_PROC_NULL = -3,
	GOMPI_ROOT = -4,
	GOMPI_BAD = -99, /* a rank or tag that is none, and a handle that is not valid */
	GOMPI_IN_PLACE = 1,
	GOMPI_UNWEIGHTED = 10,
	GOMPI_WEIGHTS_EMPTY = 11,
	GOMPI_WIDE_BIT = 62, /* of the address of an array of 64-bit integers where others are of int */
	GOMPI_WORLD_ID = 0x101,
	GOMPI_FIRST_HANDLE = 0x1000,
	GOMPI_REQUEST_NULL_ID = 0x180,
	GOMPI_REQUEST_DONE_ID = 0x181,
	GOMPI_FIRST_HELD = 0x800, /* of receives that the face holds, GOMPI_HELD */
	GOMPI_ERRORS_ABORT_ID = 0x142,
	GOMPI_REPLACE_ID = 0x3c,
	GOMPI_NO_OP_ID = 0x3d,
	GOMPI_UNDEFINED = -32766,
	GOMPI_SHARED = 221, /* MPI_COMM_TYPE_SHARED */
	GOMPI_HW_UNGUIDED = 222,
	GOMPI_HW_GUIDED = 223,
	GOMPI_CART = 211,   /* topologies */
	GOMPI_GRAPH = 212,
	GOMPI_DIST_GRAPH = 213,
	GOMPI_LOCK_EXCLUSIVE = 301,
	GOMPI_LOCK_SHARED = 302,
	GOMPI_IDENT = 201,  /* and the other comparisons behind it */
	GOMPI_PROC_FAILED = 16001, /* error classes that MPI 5.0 has not */
	GOMPI_PROC_FAILED_PENDING,
	GOMPI_REVOKED,
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

/* A face, for the core. Functions of the program are called through it. */
struct gompi_face {
	int32_t proc_null, undefined;
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
	int32_t (*unsupported)(const char *name);
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

/* What libgompi-mpi.so exports. */
void gompi_mpi_core(struct gompi_mpi_core *core);

#endif
