/* Conversions between the handles and constants of the installed mpi.h and those of the core. The
 * generated functions use the macros: IN_kind of what the caller gives, OUT_kind of what it gets. */
#ifndef GOMPI_FACE_H
#define GOMPI_FACE_H
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#define MPICH_SUPPRESS_PROTOTYPES 0
#include <mpi.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include "../core.h"

/* ---- Handles: handles_openmpi.c, handles_mpich.c, standard.c ---- */

#if defined OPEN_MPI || defined GOMPI_STANDARD
typedef void *gompi_handle;
#else
typedef int gompi_handle;
#endif

/* A handle that exists from the beginning. number is Fortran's, -1 if it has none of its own. */
struct gompi_predefined {
	int kind, id, number;
	gompi_handle handle;
};
extern const struct gompi_predefined gompi_predefined[];

#ifndef MPI_BUFFER_AUTOMATIC /* before MPI 4.1: MPICH 5's, and that of MPI 5 */
#ifdef OPEN_MPI
#define MPI_BUFFER_AUTOMATIC ((void *)2)
#else
#define MPI_BUFFER_AUTOMATIC ((void *)-2)
#endif
#endif

#if defined OPEN_MPI && !defined MPIX_C_FLOAT16 /* which Open MPI 5 exports, and no header declares */
extern char ompi_mpi_short_float[512];
#define MPIX_C_FLOAT16 ((MPI_Datatype)ompi_mpi_short_float)
#endif
#if defined OPEN_MPI && !defined MPI_LB /* which Fortran has, and the library */
extern char ompi_mpi_lb[512], ompi_mpi_ub[512];
#define MPI_LB ((MPI_Datatype)ompi_mpi_lb)
#define MPI_UB ((MPI_Datatype)ompi_mpi_ub)
#endif
#ifndef MPI_SESSION_NULL /* the header is older than MPI 4 */
typedef gompi_handle MPI_Session;
typedef void MPI_Session_errhandler_function(MPI_Session *, int *, ...);
#ifdef OPEN_MPI
extern char ompi_mpi_instance_null[512];
#define MPI_SESSION_NULL ((MPI_Session)ompi_mpi_instance_null)
#else
#define MPI_SESSION_NULL ((MPI_Session)0x38000000)
#endif
#endif

void gompi_set_up_handles(void);
#ifdef GOMPI_STANDARD
#include "standard.h"
#else
int gompi_id(int kind, gompi_handle h);         /* GOMPI_BAD if it is not valid */
gompi_handle gompi_handle_of(int kind, int id); /* id is valid */
#endif

#define HANDLE(kind, type) \
	static inline gompi_word IN_##kind(type h) { return gompi_id(KIND_##kind, (gompi_handle)(intptr_t)h); } \
	static inline type TO_##kind(gompi_word id) { return (type)(intptr_t)gompi_handle_of(KIND_##kind, (int)id); }
HANDLE(comm, MPI_Comm)
HANDLE(datatype, MPI_Datatype)
HANDLE(op, MPI_Op)
HANDLE(group, MPI_Group)
HANDLE(request, MPI_Request)
HANDLE(errhandler, MPI_Errhandler)
HANDLE(info, MPI_Info)
HANDLE(message, MPI_Message)
HANDLE(session, MPI_Session)
HANDLE(file, MPI_File)
HANDLE(win, MPI_Win)

#define OUT_comm(p, w) (*(p) = TO_comm(w), gompi_made_comm(*(p)), gompi_clear_stack())
#define OUT_datatype(p, w) (*(p) = TO_datatype(w))
#define OUT_op(p, w) (*(p) = TO_op(w), gompi_made_op(*(p)))
#define OUT_group(p, w) (*(p) = TO_group(w))
#define OUT_request(p, w) (*(p) = TO_request(w))
#define OUT_errhandler(p, w) (*(p) = TO_errhandler(w))
#define OUT_info(p, w) (*(p) = TO_info(w))
#define OUT_message(p, w) (*(p) = TO_message(w))
#define OUT_win(p, w) (*(p) = TO_win(w))
#define OUT_file(p, w) (*(p) = TO_file(w))
#define OUT_session(p, w) (*(p) = TO_session(w), gompi_turn()) /* it has begun or ended */

/* ---- Numbers ---- */

#define IN_int(x) (x)
#define OUT_int(p, w) (*(p) = sizeof *(p) == sizeof(int) && (w) > INT_MAX ? MPI_UNDEFINED : (w))
#define IN_aint(x) (x)
#define OUT_aint(p, w) (*(p) = (w))
#define IN_flag(x) (x)
#define OUT_flag(p, w) (*(p) = (w))
#define OUT_comparison(p, w) (*(p) = (int)(w) - GOMPI_IDENTICAL + MPI_IDENT)

#define IN_address(x) ((gompi_word)(x))
#define OUT_address(p, w) (*(void **)(p) = (void *)(w))
#ifndef IN_function
#define IN_function(x) ((gompi_word)(x))
#endif
#define IN_array(x) ((gompi_word)(x))
#define IN_wide(x) ((x) ? (gompi_word)(x) | (gompi_word)1 << GOMPI_WIDE_BIT : 0)
#define IN_text(x) ((gompi_word)(x))
#define IN_buffer(x) ((const void *)(x) == MPI_IN_PLACE ? GOMPI_IN_PLACE : (gompi_word)(x))
#define IN_weights(x) \
	((const int *)(x) == MPI_UNWEIGHTED ? GOMPI_UNWEIGHTED : \
	 (const int *)(x) == MPI_WEIGHTS_EMPTY ? GOMPI_WEIGHTS_EMPTY : (gompi_word)(x))

static inline gompi_word IN_rank(int r)
{
	return r >= 0 ? r : r == MPI_PROC_NULL ? GOMPI_PROC_NULL : r == MPI_ANY_SOURCE ? GOMPI_ANY_SOURCE : GOMPI_BAD;
}
static inline gompi_word IN_root(int r)
{
	return r >= 0 ? r : r == MPI_PROC_NULL ? GOMPI_PROC_NULL : r == MPI_ROOT ? GOMPI_ROOT_HERE : GOMPI_BAD;
}
static inline gompi_word IN_tag(int t) { return t >= 0 ? t : t == MPI_ANY_TAG ? GOMPI_ANY_TAG : GOMPI_BAD; }

static inline int gompi_rank_out(gompi_word r)
{
	return r == GOMPI_PROC_NULL ? MPI_PROC_NULL : r == GOMPI_ANY_SOURCE ? MPI_ANY_SOURCE : (int)r;
}
static inline int gompi_tag_out(gompi_word t) { return t == GOMPI_ANY_TAG ? MPI_ANY_TAG : (int)t; }
#define OUT_rank(p, w) (*(p) = gompi_rank_out(w))

/* Enumerations: constants.c. */
#ifdef GOMPI_STANDARD /* whose numbers are the core's */
#define gompi_constant_in(enumeration, x) (x)
#define gompi_constant_out(enumeration, x) ((int)(x))
#else
int gompi_constant_in(int enumeration, int x);
int gompi_constant_out(int enumeration, gompi_word x);
#endif
enum { ENUM_code, ENUM_keyval, ENUM_combiner, ENUM_order, ENUM_typeclass, ENUM_splittype, ENUM_topology, ENUM_whence, ENUM_locktype, ENUMS };
#define IN_code(x) gompi_constant_in(ENUM_code, x)
#define OUT_code(p, w) (*(p) = gompi_constant_out(ENUM_code, w))
#define IN_keyval(x) gompi_constant_in(ENUM_keyval, x)
#define OUT_keyval(p, w) (*(p) = gompi_constant_out(ENUM_keyval, w))
#define OUT_combiner(p, w) (*(p) = gompi_constant_out(ENUM_combiner, w))
#define IN_order(x) gompi_constant_in(ENUM_order, x)
#define IN_typeclass(x) gompi_constant_in(ENUM_typeclass, x)
#define IN_splittype(x) gompi_constant_in(ENUM_splittype, x)
#define OUT_topology(p, w) (*(p) = gompi_constant_out(ENUM_topology, w))

#ifdef GOMPI_STANDARD
#define gompi_amode_in(mode) (mode)
#define gompi_amode_out(mode) ((int)(mode))
#else
int gompi_amode_in(int mode);
int gompi_amode_out(gompi_word mode);
#endif
#define IN_amode(x) gompi_amode_in(x)
#define OUT_amode(p, w) (*(p) = gompi_amode_out(w))
#define IN_locktype(x) gompi_constant_in(ENUM_locktype, x)
#define IN_whence(x) gompi_constant_in(ENUM_whence, x)
#define IN_disp(x) ((x) == MPI_DISPLACEMENT_CURRENT ? -1 : (x) == -1 ? -2 : (x))

/* Assertions: the core has a bit for each, in this order. */
#define IN_assertion(x) \
	(((x) & MPI_MODE_NOCHECK ? 1 : 0) | ((x) & MPI_MODE_NOSTORE ? 2 : 0) | ((x) & MPI_MODE_NOPUT ? 4 : 0) | \
	 ((x) & MPI_MODE_NOPRECEDE ? 8 : 0) | ((x) & MPI_MODE_NOSUCCEED ? 16 : 0))

/* ---- Statuses ---- */

void gompi_status_in(struct gompi_status *s, const MPI_Status *p);
void gompi_status_out(MPI_Status *p, const struct gompi_status *s);

#define STATUS(s, p) struct gompi_status s = {.error = -1, .cancelled = -1}
#define STATUS_IN(s, p) struct gompi_status s; gompi_status_in(&s, p)
#define STATUS_WORD(s, p) ((p) == MPI_STATUS_IGNORE ? 0 : (gompi_word)&s)
#define STATUS_OUT(s, p) do { if ((p) != MPI_STATUS_IGNORE) gompi_status_out(p, &s); } while (0)

#define STATUSES(s, n, p) \
	struct gompi_status s##few[16], *s = (p) == MPI_STATUSES_IGNORE ? NULL : gompi_array(s##few, 16, sizeof *s, n); \
	for (int i = 0; s && i < (n); i++) s[i] = (struct gompi_status){.error = -1, .cancelled = -1}
#define STATUSES_OUT(s, n, p) \
	for (int i = 0; s && i < (n); i++) gompi_status_out((p) + i, s + i); \
	if (s != s##few) free(s)

/* ---- Arrays of handles ---- */

void *gompi_array(void *few, int room, size_t size, int n); /* few, or memory if it has not room for n */

#define IDS(ids, count, get) \
	int ids##_n = (count); \
	int32_t ids##few[64], *ids = gompi_array(ids##few, 64, sizeof *ids, ids##_n); \
	for (int i = 0; i < ids##_n; i++) ids[i] = (int32_t)(get)
#define IDS_OUT(kind, ids, p) \
	for (int i = 0; i < ids##_n; i++) if (ids[i] != GOMPI_BAD) (p)[i] = TO_##kind(ids[i])
#define IDS_FREE(ids) if (ids != ids##few) free(ids)

/* ---- Calls: face.c ---- */

extern struct gompi_mpi_core gompi_core; /* functions are there from MPI_Init or MPI_Session_init on */
int gompi_call(int function, gompi_word *arguments);
void gompi_start(void);
int gompi_call_any_time(int function, gompi_word *arguments); /* before MPI_Init and after MPI_Finalize, too */
void gompi_turn(void);
int gompi_length(int what, MPI_Comm comm);
void gompi_clear_stack(void);
int gompi_null(int function, gompi_word object, const char *name); /* the argument that stores is NULL */
int gompi_missing(const char *name);
int gompi_missing_on(const char *name, gompi_word comm);
__attribute__((noreturn, format(printf, 1, 2))) void gompi_end(const char *why, ...);
void gompi_fill_face(struct gompi_face *face); /* callbacks.c */

/* A program's error handler is called after the core has returned: it may throw or jump, and Go's stack must not be left so. */
extern __thread struct gompi_error {
	gompi_word fn;
	int errhandler, kind, object, code;
} gompi_error __attribute__((tls_model("initial-exec")));
int gompi_call_errhandler(void); /* the code that the handler leaves, which the function returns */
static inline int gompi_ended(int error)
{
	int code = error ? gompi_constant_out(ENUM_code, error) : MPI_SUCCESS;
	if (__builtin_expect(gompi_error.fn == 0, 1))
		return code;
	int left = gompi_call_errhandler();
	return error ? left : code; /* MPI_Comm_call_errhandler and the like have none */
}

/* ---- Functions in Fortran and C++: languages_openmpi.c, languages_mpich.c; and for large counts ---- */

enum { GOMPI_LARGE = 2 }; /* LANGUAGE(fn) of an operator of MPI_Op_create_c: large.c */

void gompi_set_up_languages(void); /* when the core is there */
#ifdef OPEN_MPI
void gompi_made_comm(MPI_Comm comm);
void gompi_made_op(MPI_Op op);
#else
#define gompi_made_comm(comm) ((void)0)
#define gompi_made_op(op) ((void)0)
#endif
void gompi_large_op(gompi_word fn, void *in, void *inout, MPI_Count n, MPI_Datatype *type);
int gompi_foreign_op(gompi_word fn, int op, void *in, void *inout, int *n, MPI_Datatype *type); /* 0: it is C */
int gompi_foreign_copy(gompi_word fn, int handle, int keyval, gompi_word extra, gompi_word value, gompi_word *copy, int *flag);
int gompi_foreign_delete(gompi_word fn, int handle, int keyval, gompi_word value, gompi_word extra);
void gompi_foreign_errhandler(gompi_word fn, int errhandler, int kind, void *object, int *error); /* of a handle */
int gompi_number(int kind, int id); /* what Fortran calls the handle */

#define GOMPI_STRING(x) #x
#define GOMPI_ALIAS(name) _Pragma(GOMPI_STRING(weak MPI_##name = PMPI_##name))

#endif
