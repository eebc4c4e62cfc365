/* The program's functions, which the core calls with numbers, and get handles. */
#include "face.h"
#include "counted.h"

static void call_op(gompi_word fn, gompi_word in, gompi_word inout, int32_t n, int32_t op, int32_t datatype)
{
	MPI_Datatype type = TO_datatype(datatype);
	if (!gompi_foreign_op(fn, op, (void *)in, (void *)inout, &n, &type))
		((MPI_User_function *)fn)((void *)in, (void *)inout, &n, &type);
}

static int32_t copy_attr(gompi_word fn, int32_t kind, int32_t id, int32_t keyval, gompi_word extra, gompi_word value,
                         gompi_word *copy, int32_t *flag)
{
	int error;
	if (LANGUAGE(fn))
		error = gompi_foreign_copy(fn, gompi_number(kind, id), keyval, extra, value, copy, flag);
	else if (kind == KIND_comm)
		error = ((MPI_Comm_copy_attr_function *)fn)(TO_comm(id), keyval, (void *)extra, (void *)value, copy, flag);
	else if (kind == KIND_win)
		error = ((MPI_Win_copy_attr_function *)fn)(TO_win(id), keyval, (void *)extra, (void *)value, copy, flag);
	else
		error = ((MPI_Type_copy_attr_function *)fn)(TO_datatype(id), keyval, (void *)extra, (void *)value, copy, flag);
	return gompi_constant_in(ENUM_code, error);
}

static int32_t delete_attr(gompi_word fn, int32_t kind, int32_t id, int32_t keyval, gompi_word value, gompi_word extra)
{
	int error;
	if (LANGUAGE(fn))
		error = gompi_foreign_delete(fn, gompi_number(kind, id), keyval, value, extra);
	else if (kind == KIND_comm)
		error = ((MPI_Comm_delete_attr_function *)fn)(TO_comm(id), keyval, (void *)value, (void *)extra);
	else if (kind == KIND_win)
		error = ((MPI_Win_delete_attr_function *)fn)(TO_win(id), keyval, (void *)value, (void *)extra);
	else
		error = ((MPI_Type_delete_attr_function *)fn)(TO_datatype(id), keyval, (void *)value, (void *)extra);
	return gompi_constant_in(ENUM_code, error);
}

__thread struct gompi_error gompi_error;

static void call_errhandler(gompi_word fn, int32_t errhandler, int32_t kind, int32_t object, int32_t code)
{
	gompi_error = (struct gompi_error){fn, errhandler, kind, object, code};
}

int gompi_call_errhandler(void)
{
	struct gompi_error e = gompi_error;
	gompi_error.fn = 0;
	intptr_t object = (intptr_t)gompi_handle_of(e.kind, e.object); /* as wide as any handle */
	int error = gompi_constant_out(ENUM_code, e.code);
	if (LANGUAGE(e.fn))
		gompi_foreign_errhandler(e.fn, e.errhandler, e.kind, &object, &error);
	else
		((void (*)(void *, int *, ...))e.fn)(&object, &error);
	return error;
}

/* Functions of generalized requests in Fortran are all alike. */
typedef void fortran_query(void *extra, MPI_Status *, MPI_Fint *error);
typedef void fortran_release(void *extra, MPI_Fint *error);
typedef void fortran_cancel(void *extra, MPI_Fint *complete, MPI_Fint *error);

static int32_t query(gompi_word fn, gompi_word extra, struct gompi_status *status)
{
	MPI_Status st;
	int error = MPI_SUCCESS;
	st.MPI_ERROR = MPI_SUCCESS;
	gompi_status_out(&st, status);
	if (LANGUAGE(fn))
		((fortran_query *)FUNCTION(fn))((void *)extra, &st, &error);
	else
		error = ((MPI_Grequest_query_function *)fn)((void *)extra, &st);
	gompi_status_in(status, &st);
	return gompi_constant_in(ENUM_code, error);
}

static int32_t release(gompi_word fn, gompi_word extra)
{
	int error = MPI_SUCCESS;
	if (LANGUAGE(fn))
		((fortran_release *)FUNCTION(fn))((void *)extra, &error);
	else
		error = ((MPI_Grequest_free_function *)fn)((void *)extra);
	return gompi_constant_in(ENUM_code, error);
}

static int32_t cancel(gompi_word fn, gompi_word extra, int32_t complete)
{
	int error = MPI_SUCCESS;
	if (LANGUAGE(fn))
		((fortran_cancel *)FUNCTION(fn))((void *)extra, &complete, &error);
	else
		error = ((MPI_Grequest_cancel_function *)fn)((void *)extra, complete);
	return gompi_constant_in(ENUM_code, error);
}

void gompi_fill_face(struct gompi_face *face)
{
	*face = (struct gompi_face){
		.proc_null = MPI_PROC_NULL,
		.any_source = MPI_ANY_SOURCE,
		.undefined = MPI_UNDEFINED,
		.bsend_overhead = MPI_BSEND_OVERHEAD,
		.buffer_automatic = (gompi_word)MPI_BUFFER_AUTOMATIC,
		.last_code = MPI_ERR_LASTCODE,
		.max_object_name = MPI_MAX_OBJECT_NAME,
		.max_error_string = MPI_MAX_ERROR_STRING,
		.max_processor_name = MPI_MAX_PROCESSOR_NAME,
		.max_info_key = MPI_MAX_INFO_KEY,
		.max_info_val = MPI_MAX_INFO_VAL,
		.win_unified = MPI_WIN_UNIFIED,
		.win_flavor_create = MPI_WIN_FLAVOR_CREATE,
		.distribute_block = MPI_DISTRIBUTE_BLOCK,
		.distribute_cyclic = MPI_DISTRIBUTE_CYCLIC,
		.distribute_none = MPI_DISTRIBUTE_NONE,
		.distribute_default = MPI_DISTRIBUTE_DFLT_DARG,
		.call_op = call_op,
		.copy_attr = copy_attr,
		.delete_attr = delete_attr,
		.call_errhandler = call_errhandler,
		.query = query,
		.release = release,
		.cancel = cancel,
		.count = gompi_count,
	};
}

/* ---- Attributes' predefined functions, where mpi.h has them as functions ---- */

#ifdef OPEN_MPI
#define COPIES(kind, type) \
	int OMPI_C_MPI_##kind##NULL_COPY_FN(type h, int k, void *extra, void *in, void *out, int *flag) \
	{ \
		(void)h, (void)k, (void)extra, (void)in, (void)out; \
		*flag = 0; \
		return MPI_SUCCESS; \
	} \
	int OMPI_C_MPI_##kind##DUP_FN(type h, int k, void *extra, void *in, void *out, int *flag) \
	{ \
		(void)h, (void)k, (void)extra; \
		*(void **)out = in; \
		*flag = 1; \
		return MPI_SUCCESS; \
	} \
	int OMPI_C_MPI_##kind##NULL_DELETE_FN(type h, int k, void *value, void *extra) \
	{ return (void)h, (void)k, (void)value, (void)extra, MPI_SUCCESS; }
COPIES(, MPI_Comm)
COPIES(COMM_, MPI_Comm)
COPIES(TYPE_, MPI_Datatype)
COPIES(WIN_, MPI_Win)
#elif defined GOMPI_STANDARD
int gompi_dup(void *h, int k, void *extra, void *in, void *out, int *flag)
{
	(void)h, (void)k, (void)extra;
	*(void **)out = in;
	return *flag = 1, MPI_SUCCESS;
}
#else
int MPIR_Dup_fn(MPI_Comm c, int k, void *extra, void *in, void *out, int *flag)
{
	(void)c, (void)k, (void)extra;
	*(void **)out = in;
	return *flag = 1, MPI_SUCCESS;
}
#endif
