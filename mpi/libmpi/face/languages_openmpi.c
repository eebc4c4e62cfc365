/* What Open MPI's libraries for Fortran and C++ want of libmpi. */
#include "openmpi.h"
#ifdef OPEN_MPI
#include <string.h>

enum { FORTRAN_OP = 2, CXX_OP = 4 };                        /* flags of an operator */
enum { CXX_HANDLER = 1, FORTRAN_HANDLER = 2 };              /* languages of an error handler */
enum { WIN_HANDLER = 2, FILE_HANDLER = 3 };                 /* kinds of an error handler */
enum { WIN_ATTRIBUTE = 3 };                                 /* kinds of an attribute; others are KIND_... */
enum { FORTRAN_INTEGERS = 1, FORTRAN = 2, HANDLER = 3 };    /* LANGUAGE(fn) */
enum { INTERCOMM = 1, CARTCOMM = 0x100, GRAPHCOMM = 0x200 }; /* flags of a communicator */

/* Programs in Fortran have these, and Open MPI's library compares addresses with theirs. */
extern MPI_Fint mpi_fortran_status_ignore_[], mpi_fortran_statuses_ignore_[];
MPI_Fint *MPI_F_STATUS_IGNORE = mpi_fortran_status_ignore_, *MPI_F_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;
MPI_Status ompi_status_empty = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
extern struct gompi_object ompi_mpi_errors_throw_exceptions;

/* MPI::ERRORS_THROW_EXCEPTIONS: MPI::Init stores the function that throws. */
static void throw_exception(MPI_Comm *comm, int *error, ...)
{
	MPI_Comm_errhandler_function *fn = (MPI_Comm_errhandler_function *)ompi_mpi_errors_throw_exceptions.functions[0];
	if (fn)
		fn(comm, error);
}

/* The libraries look into a communicator. */
void gompi_made_comm(MPI_Comm comm)
{
	struct gompi_object *o = (struct gompi_object *)comm;
	int inter = 0, topology = MPI_UNDEFINED;
	if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) || PMPI_Topo_test(comm, &topology))
		return;
	o->peers = gompi_length(GOMPI_PEERS, comm);
	o->flags = (inter ? INTERCOMM : 0) | (topology == MPI_CART ? CARTCOMM : topology == MPI_GRAPH ? GRAPHCOMM : 0);
}

void gompi_set_up_languages(void)
{
	MPI_Errhandler h;
	if (PMPI_Comm_create_errhandler(throw_exception, &h) == MPI_SUCCESS)
		memcpy(&ompi_mpi_errors_throw_exceptions, h, offsetof(struct gompi_object, rest));
}

/* ---- Operators ---- */

typedef void fortran_op(void *in, void *inout, int *n, MPI_Fint *type);
typedef void cxx_op(void *in, void *inout, int *n, MPI_Datatype *type, void *fn);

void gompi_made_op(MPI_Op op) { ((struct gompi_object *)op)->language = 0; } /* the memory may have been another's */

void ompi_op_set_cxx_callback(struct gompi_object *op, void *fn)
{
	op->language = CXX_OP;
	op->functions[0] = fn;
}

int gompi_foreign_op(gompi_word fn, int op, void *in, void *inout, int *n, MPI_Datatype *type)
{
	const struct gompi_object *o = gompi_handle_of(KIND_op, op);
	MPI_Fint number = PMPI_Type_c2f(*type);
	if (o->language == FORTRAN_OP)
		((fortran_op *)fn)(in, inout, n, &number);
	else if (o->language == CXX_OP)
		((cxx_op *)fn)(in, inout, n, type, o->functions[0]);
	return o->language != 0;
}

/* ---- Error handlers ---- */

typedef void cxx_dispatch(MPI_Comm *, int *error, const char *text, void *fn);

void *ompi_errhandler_create(int kind, void *fn, int language)
{
	MPI_Errhandler h;
	int error = kind == FILE_HANDLER ? PMPI_File_create_errhandler(fn, &h) :
		    kind == WIN_HANDLER  ? PMPI_Win_create_errhandler(fn, &h) :
					   PMPI_Comm_create_errhandler(fn, &h);
	if (error)
		return MPI_ERRHANDLER_NULL;
	((struct gompi_object *)h)->language = language;
	if (language)
		gompi_core.set_language(KIND_errhandler, (int)IN_errhandler(h), HANDLER);
	return h;
}

void gompi_foreign_errhandler(gompi_word fn, int errhandler, int kind, void *object, int *error)
{
	struct gompi_object *h = gompi_handle_of(KIND_errhandler, errhandler);
	MPI_Fint number = (*(struct gompi_object **)object)->number;
	(void)kind;
	if (h->language == CXX_HANDLER)
		((cxx_dispatch *)h->dispatch)((MPI_Comm *)object, error, "", (void *)FUNCTION(fn));
	else
		((void (*)(MPI_Fint *, MPI_Fint *))FUNCTION(fn))(&number, error);
}

int ompi_errhandler_invoke(void *handler, void *object, int kind, int error, const char *text)
{
	(void)handler, (void)text;
	int of_comm = kind == 1 && gompi_id(KIND_comm, object) >= 0;
	PMPI_Comm_call_errhandler(of_comm ? (MPI_Comm)object : MPI_COMM_WORLD, error);
	return error;
}

/* ---- Attributes ---- */

/* Fortran's functions have INTEGERs, those of MPI 1, or integers as long as an address. */
#define CALLS(name, integer) \
	static int copy_##name(gompi_word fn, MPI_Fint h, MPI_Fint keyval, integer extra, integer value, \
	                       gompi_word *copy, MPI_Fint *flag) \
	{ \
		MPI_Fint error = MPI_SUCCESS; \
		integer copied = value; \
		((void (*)(MPI_Fint *, MPI_Fint *, integer *, integer *, integer *, MPI_Fint *, MPI_Fint *))fn)( \
			&h, &keyval, &extra, &value, &copied, flag, &error); \
		*copy = copied; \
		return error; \
	} \
	static int delete_##name(gompi_word fn, MPI_Fint h, MPI_Fint keyval, integer value, integer extra) \
	{ \
		MPI_Fint error = MPI_SUCCESS; \
		((void (*)(MPI_Fint *, MPI_Fint *, integer *, integer *, MPI_Fint *))fn)(&h, &keyval, &value, &extra, &error); \
		return error; \
	} \
	static int create_##name(int kind, void *copy, void *del, int *keyval, integer extra, int language) \
	{ \
		void *x = (void *)(gompi_word)extra; \
		int error = kind == KIND_comm ? PMPI_Comm_create_keyval(copy, del, keyval, x) : \
			    kind == KIND_datatype ? PMPI_Type_create_keyval(copy, del, keyval, x) : \
						    PMPI_Win_create_keyval(copy, del, keyval, x); \
		if (!error && language) \
			gompi_core.set_language(KIND_keyval, *keyval, language); \
		return error; \
	}
CALLS(fint, MPI_Fint)
CALLS(aint, MPI_Aint)

int gompi_foreign_copy(gompi_word fn, int h, int keyval, gompi_word extra, gompi_word value, gompi_word *copy, int *flag)
{
	if (LANGUAGE(fn) == FORTRAN_INTEGERS)
		return copy_fint(FUNCTION(fn), h, keyval, (MPI_Fint)extra, (MPI_Fint)value, copy, flag);
	return copy_aint(FUNCTION(fn), h, keyval, extra, value, copy, flag);
}

int gompi_foreign_delete(gompi_word fn, int h, int keyval, gompi_word value, gompi_word extra)
{
	if (LANGUAGE(fn) == FORTRAN_INTEGERS)
		return delete_fint(FUNCTION(fn), h, keyval, (MPI_Fint)value, (MPI_Fint)extra);
	return delete_aint(FUNCTION(fn), h, keyval, value, extra);
}

int ompi_attr_create_keyval(int kind, void *copy, void *del, int *keyval, void *extra, int flags, void *bindings)
{
	(void)flags, (void)bindings;
	return create_aint(kind, copy, del, keyval, (MPI_Aint)extra, 0);
}
int ompi_attr_create_keyval_fint(int kind, void *copy, void *del, int *keyval, MPI_Fint extra, int flags, void *bindings)
{
	(void)flags, (void)bindings;
	return create_fint(kind, copy, del, keyval, extra, FORTRAN_INTEGERS);
}
int ompi_attr_create_keyval_aint(int kind, void *copy, void *del, int *keyval, MPI_Aint extra, int flags, void *bindings)
{
	(void)flags, (void)bindings;
	return create_aint(kind, copy, del, keyval, extra, FORTRAN);
}

/* These get a pointer out of the object, which is the object. */
static int get(struct gompi_object *o, int keyval, gompi_word *value, int *flag)
{
	int kind = gompi_id(KIND_datatype, o) != GOMPI_BAD ? KIND_datatype : gompi_id(KIND_win, o) != GOMPI_BAD ? KIND_win : KIND_comm;
	return gompi_ended(gompi_core.integer(kind, gompi_id(kind, o), IN_keyval(keyval), value, flag));
}
static int set(int kind, void *object, int keyval, gompi_word value)
{
	if (kind == WIN_ATTRIBUTE)
		kind = KIND_win;
	return gompi_ended(gompi_core.set_integer(kind, gompi_id(kind, object), keyval, value));
}

int ompi_attr_get_aint(struct gompi_object *o, int keyval, MPI_Aint *value, int *flag)
{
	return get(o, keyval, value, flag);
}
int ompi_attr_get_fint(struct gompi_object *o, int keyval, MPI_Fint *value, int *flag)
{
	gompi_word x = 0;
	int error = get(o, keyval, &x, flag);
	if (!error && *flag)
		*value = (MPI_Fint)x;
	return error;
}
int ompi_attr_set_aint(int kind, void *object, void **hash, int keyval, MPI_Aint value, _Bool predefined)
{
	(void)hash, (void)predefined;
	return set(kind, object, keyval, value);
}
int ompi_attr_set_fint(int kind, void *object, void **hash, int keyval, MPI_Fint value, _Bool predefined)
{
	(void)hash, (void)predefined;
	return set(kind, object, keyval, value);
}

/* Fortran's functions that do nothing. Each has the names that compilers make of it. */
#define NAMES(upper, lower, result, ...) \
	result ompi_##lower##_f(__VA_ARGS__); \
	result MPI_##upper(__VA_ARGS__) __attribute__((alias("ompi_" #lower "_f"))); \
	result mpi_##lower(__VA_ARGS__) __attribute__((alias("ompi_" #lower "_f"))); \
	result mpi_##lower##_(__VA_ARGS__) __attribute__((alias("ompi_" #lower "_f"))); \
	result mpi_##lower##__(__VA_ARGS__) __attribute__((alias("ompi_" #lower "_f")))
#undef MPI_NULL_COPY_FN
#undef MPI_NULL_DELETE_FN
#undef MPI_DUP_FN
#undef MPI_COMM_NULL_COPY_FN
#undef MPI_COMM_NULL_DELETE_FN
#undef MPI_COMM_DUP_FN
#undef MPI_TYPE_NULL_COPY_FN
#undef MPI_TYPE_NULL_DELETE_FN
#undef MPI_TYPE_DUP_FN
#undef MPI_WIN_NULL_COPY_FN
#undef MPI_WIN_NULL_DELETE_FN
#undef MPI_WIN_DUP_FN
#define NOTHING(upper, lower, integer) \
	NAMES(upper##NULL_COPY_FN, lower##null_copy_fn, void, MPI_Fint *, MPI_Fint *, integer *, integer *, integer *, MPI_Fint *, MPI_Fint *); \
	NAMES(upper##DUP_FN, lower##dup_fn, void, MPI_Fint *, MPI_Fint *, integer *, integer *, integer *, MPI_Fint *, MPI_Fint *); \
	NAMES(upper##NULL_DELETE_FN, lower##null_delete_fn, void, MPI_Fint *, MPI_Fint *, integer *, integer *, MPI_Fint *); \
	void ompi_##lower##null_copy_fn_f(MPI_Fint *h, MPI_Fint *key, integer *extra, integer *in, integer *out, MPI_Fint *flag, MPI_Fint *error) \
	{ \
		(void)h, (void)key, (void)extra, (void)in, (void)out; \
		*flag = 0; \
		*error = MPI_SUCCESS; \
	} \
	void ompi_##lower##dup_fn_f(MPI_Fint *h, MPI_Fint *key, integer *extra, integer *in, integer *out, MPI_Fint *flag, MPI_Fint *error) \
	{ \
		(void)h, (void)key, (void)extra; \
		*out = *in; \
		*flag = 1; \
		*error = MPI_SUCCESS; \
	} \
	void ompi_##lower##null_delete_fn_f(MPI_Fint *h, MPI_Fint *key, integer *value, integer *extra, MPI_Fint *error) \
	{ \
		(void)h, (void)key, (void)value, (void)extra; \
		*error = MPI_SUCCESS; \
	}
NOTHING(, , MPI_Fint)
NOTHING(COMM_, comm_, MPI_Aint)
NOTHING(TYPE_, type_, MPI_Aint)
NOTHING(WIN_, win_, MPI_Aint)

/* ---- The rest ---- */

void gompi_note_language(struct gompi_object *request)
{
	if (!request || request->functions_in_c)
		return;
	request->functions_in_c = 1;
	gompi_core.set_language(KIND_request, request->id, FORTRAN);
}

/* The kinds of numbers, and the language, are Open MPI's. */
void *ompi_datatype_match_size(int size, unsigned short kind, unsigned short language)
{
	MPI_Datatype type;
	(void)language;
	int class = kind == 0x1000 ? MPI_TYPECLASS_INTEGER : kind == 0x2000 ? MPI_TYPECLASS_REAL : MPI_TYPECLASS_COMPLEX;
	return PMPI_Type_match_size(class, size, &type) == MPI_SUCCESS ? (void *)type : (void *)MPI_DATATYPE_NULL;
}

/* Fortran's texts have blanks at their end. */
int ompi_fortran_string_f2c(const char *text, int length, char **out)
{
	while (length > 0 && text[length - 1] == ' ')
		length--;
	while (length > 0 && *text == ' ')
		text++, length--;
	return (*out = strndup(text, (size_t)length)) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int ompi_fortran_string_c2f(const char *text, char *out, int length)
{
	size_t n = strnlen(text, (size_t)length);
	memcpy(out, text, n);
	memset(out + n, ' ', (size_t)length - n);
	return MPI_SUCCESS;
}
#endif
