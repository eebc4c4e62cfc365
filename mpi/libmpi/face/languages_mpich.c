/* What MPICH's libraries for Fortran and C++ want of libmpi. */
#include "face.h"
#if !defined OPEN_MPI && !defined GOMPI_STANDARD

typedef int copy_proxy(void *fn, int handle, int keyval, void *extra, int type, void *value, void **copy, int *flag);
typedef int delete_proxy(void *fn, int handle, int keyval, int type, void *value, void *extra);
typedef void cxx_op(void *in, void *inout, int n, MPI_Datatype type, void *fn);
typedef void cxx_errhandler(int kind, int *handle, int *error, void *fn);

/* LANGUAGE(fn): of operators, error handlers and requests one; of keyvals the place of its proxies. */
enum { FOREIGN = 1, PROXIES = 16 };
static struct {
	copy_proxy *copy;
	delete_proxy *del;
} proxies[PROXIES];
static cxx_op *call_cxx_op;
static cxx_errhandler *call_cxx_errhandler;

static int unweighted, weights_empty;
int *const MPI_UNWEIGHTED = &unweighted, *const MPI_WEIGHTS_EMPTY = &weights_empty;
int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY; /* mpi_f08's, which may be those of its library */
extern MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;

void gompi_set_up_languages(void)
{
	MPIR_C_MPI_UNWEIGHTED = MPI_UNWEIGHTED;
	MPIR_C_MPI_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
}
int gompi_number(int kind, int id) { return gompi_handle_of(kind, id); }

void MPII_Op_set_cxx(MPI_Op op, cxx_op *call)
{
	call_cxx_op = call;
	gompi_core.set_language(KIND_op, (int)IN_op(op), FOREIGN);
}

/* Fortran's integers are C's, handles too. */
int gompi_foreign_op(gompi_word fn, int op, void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)op;
	if (LANGUAGE(fn) == GOMPI_LARGE)
		gompi_large_op(fn, in, inout, *n, type);
	else if (LANGUAGE(fn))
		call_cxx_op(in, inout, *n, *type, (void *)FUNCTION(fn));
	return LANGUAGE(fn);
}

void MPII_Errhandler_set_cxx(MPI_Errhandler h, cxx_errhandler *call)
{
	call_cxx_errhandler = call;
	gompi_core.set_language(KIND_errhandler, (int)IN_errhandler(h), FOREIGN);
}

/* C++ knows communicators as 0 and files as 1. */
void gompi_foreign_errhandler(gompi_word fn, int errhandler, int kind, void *object, int *error)
{
	(void)errhandler;
	call_cxx_errhandler(kind == KIND_file, object, error, (void *)FUNCTION(fn));
}

void MPII_Grequest_set_lang_f77(MPI_Request request)
{
	gompi_core.set_language(KIND_request, (int)IN_request(request), FOREIGN);
}

void MPII_Keyval_set_proxy(int keyval, copy_proxy *copy, delete_proxy *del)
{
	int at = 1;
	while (at < PROXIES - 1 && proxies[at].copy && (proxies[at].copy != copy || proxies[at].del != del))
		at++; /* there are few pairs: one for each language and kind of object */
	proxies[at].copy = copy;
	proxies[at].del = del;
	gompi_core.set_language(KIND_keyval, keyval, at);
}

int gompi_foreign_copy(gompi_word fn, int h, int keyval, gompi_word extra, gompi_word value, gompi_word *copy, int *flag)
{
	return proxies[LANGUAGE(fn)].copy((void *)FUNCTION(fn), h, keyval, (void *)extra, 0, (void *)value, (void **)copy, flag);
}

int gompi_foreign_delete(gompi_word fn, int h, int keyval, gompi_word value, gompi_word extra)
{
	return proxies[LANGUAGE(fn)].del((void *)FUNCTION(fn), h, keyval, 0, (void *)value, (void *)extra);
}

/* type: 0 for what is a pointer in C, 1 for an integer as long as one, 3 for an INTEGER. */
static int get(int kind, int id, int keyval, gompi_word *value, int *flag)
{
	gompi_word x = 0;
	int base = keyval & ~0xff; /* those that are predefined are C's and one */
	int in_c = base == (MPI_TAG_UB & ~0xff) || base == (MPI_WIN_BASE & ~0xff) ? keyval - 1 : keyval;
	int error = gompi_ended(gompi_core.integer(kind, id, IN_keyval(in_c), &x, flag));
	if (!error && *flag)
		*value = x;
	return error;
}

#define ATTRIBUTES(name, type, kind) \
	int PMPI_##name##_get_attr(type, int, void *, int *); \
	int PMPI_##name##_set_attr(type, int, void *); \
	int MPII_##name##_get_attr(type h, int keyval, void *value, int *flag, int of) \
	{ \
		return of ? get(KIND_##kind, (int)IN_##kind(h), keyval, value, flag) : PMPI_##name##_get_attr(h, keyval, value, flag); \
	} \
	int MPII_##name##_set_attr(type h, int keyval, void *value, int of) \
	{ \
		return of ? gompi_ended(gompi_core.set_integer(KIND_##kind, (int)IN_##kind(h), keyval, (gompi_word)value)) : \
			    PMPI_##name##_set_attr(h, keyval, value); \
	}
ATTRIBUTES(Comm, MPI_Comm, comm)
ATTRIBUTES(Type, MPI_Datatype, datatype)
ATTRIBUTES(Win, MPI_Win, win)
#endif
