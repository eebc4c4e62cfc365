/* What MPI 5.0's binary interface has of its own: numbers of handles, and no Fortran or C++. */
#include "face.h"
#ifdef GOMPI_STANDARD

uint8_t gompi_kinds[GOMPI_FIRST_HANDLE];

void gompi_set_up_handles(void)
{
	for (const struct gompi_predefined *p = gompi_predefined; p->kind; p++)
		gompi_kinds[p->id] = (uint8_t)p->kind;
}

#define NUMBERS(name, type) \
	GOMPI_ALIAS(name##_toint) \
	GOMPI_ALIAS(name##_fromint) \
	int PMPI_##name##_toint(type h) { return (int)(uintptr_t)h; } \
	type PMPI_##name##_fromint(int number) { return (type)(uintptr_t)number; }
NUMBERS(Comm, MPI_Comm)
NUMBERS(Type, MPI_Datatype)
NUMBERS(Op, MPI_Op)
NUMBERS(Group, MPI_Group)
NUMBERS(Request, MPI_Request)
NUMBERS(Errhandler, MPI_Errhandler)
NUMBERS(Info, MPI_Info)
NUMBERS(Message, MPI_Message)
NUMBERS(Session, MPI_Session)
NUMBERS(Win, MPI_Win)
NUMBERS(File, MPI_File)

void gompi_set_up_languages(void) {}
int gompi_number(int kind, int id) { return (int)(uintptr_t)gompi_handle_of(kind, id); }

int gompi_foreign_op(gompi_word fn, int op, void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)op;
	if (LANGUAGE(fn))
		gompi_large_op(fn, in, inout, *n, type);
	return LANGUAGE(fn);
}

/* No other function is in another language. */
int gompi_foreign_copy(gompi_word fn, int h, int keyval, gompi_word extra, gompi_word value, gompi_word *copy, int *flag)
{
	(void)fn, (void)h, (void)keyval, (void)extra, (void)value, (void)copy, (void)flag;
	return MPI_ERR_INTERN;
}

int gompi_foreign_delete(gompi_word fn, int h, int keyval, gompi_word value, gompi_word extra)
{
	(void)fn, (void)h, (void)keyval, (void)value, (void)extra;
	return MPI_ERR_INTERN;
}

void gompi_foreign_errhandler(gompi_word fn, int errhandler, int kind, void *object, int *error)
{
	(void)fn, (void)errhandler, (void)kind, (void)object, (void)error;
}
#endif
