/* Open MPI's handles: pointers. The predefined ones are objects that the library exports. */
#include "openmpi.h"
#ifdef OPEN_MPI
#include <pthread.h>

enum { MAGIC = 0x676f4d00, CHUNK = 256, CHUNKS = 1 << 15 };

/* How much room an object has: the C++ and Fortran libraries look into some. */
static const size_t sizes[KINDS] = {
	[KIND_comm] = sizeof(struct gompi_object), [KIND_datatype] = 216, [KIND_op] = 128, [KIND_group] = 128,
	[KIND_request] = 200, [KIND_errhandler] = 128, [KIND_info] = 128, [KIND_message] = 128,
	[KIND_session] = 128, [KIND_file] = 128, [KIND_win] = 256,
};
_Static_assert(offsetof(struct gompi_object, type_attributes) + 8 <= 216, "an object has less room than is used");
_Static_assert(offsetof(struct gompi_object, functions_in_c) < 200, "an object has less room than is used");

static struct gompi_object *predefined[KINDS][GOMPI_FIRST_HANDLE]; /* by id */
static struct gompi_object *numbered[KINDS][GOMPI_FIRST_HANDLE];   /* by Fortran's number */
static char *chunks[KINDS][CHUNKS];                                 /* of others, by id; never freed */
static struct gompi_object done, held[GOMPI_LEASE_HELD];
#ifndef MPI_ERRORS_ABORT /* which programs that were built with Open MPI 5 have */
struct { _Alignas(16) char room[1024]; } ompi_mpi_errors_abort;
#define MPI_ERRORS_ABORT (&ompi_mpi_errors_abort)
#endif
_Alignas(16) char ompi_mpi_short_float[512];
#if MPI_VERSION < 4
_Alignas(16) char ompi_mpi_instance_null[512];
#endif
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fill(struct gompi_object *o, int kind, int id, int number)
{
	o->magic = MAGIC + kind;
	o->id = id;
	o->number = o->group_number = number;
	if (kind == KIND_comm)
		o->comm_attributes = o->groups[0] = o->groups[1] = o;
	if (kind == KIND_datatype)
		o->type_attributes = o;
	if (kind == KIND_win)
		o->win_attributes = o;
	if (kind == KIND_request)
		o->functions_in_c = 1;
}

static void predefine(int kind, int id, int number, struct gompi_object *o)
{
	if (o->magic != MAGIC + (uint32_t)kind) /* two names may have one object: the first is its own */
		fill(o, kind, id, number);
	predefined[kind][id] = o;
	if (number >= 0)
		numbered[kind][number] = o;
}

void gompi_set_up_handles(void)
{
	for (const struct gompi_predefined *p = gompi_predefined; p->kind; p++)
		predefine(p->kind, p->id, p->number, p->handle);
	predefine(KIND_request, GOMPI_ID_REQUEST_DONE, -1, &done);
	for (int i = 0; i < GOMPI_LEASE_HELD; i++)
		predefine(KIND_request, GOMPI_ID_FIRST_HELD + i, GOMPI_ID_FIRST_HELD + i, &held[i]);
	predefine(KIND_errhandler, GOMPI_ID_ERRORS_ABORT, -1, (void *)MPI_ERRORS_ABORT);
}

int gompi_id(int kind, gompi_handle h)
{
	const struct gompi_object *o = h;
	return o && o->magic == MAGIC + (uint32_t)kind ? o->id : GOMPI_BAD;
}

static char *make_chunk(int kind, int at)
{
	pthread_mutex_lock(&lock);
	char *chunk = __atomic_load_n(&chunks[kind][at], __ATOMIC_ACQUIRE);
	if (!chunk && (chunk = calloc(CHUNK, sizes[kind]))) {
		for (int i = 0; i < CHUNK; i++) {
			int id = GOMPI_FIRST_HANDLE + at * CHUNK + i;
			fill((struct gompi_object *)(chunk + i * sizes[kind]), kind, id, id);
		}
		__atomic_store_n(&chunks[kind][at], chunk, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return chunk;
}

gompi_handle gompi_handle_of(int kind, int id)
{
	if (id < 0)
		return NULL;
	if (id < GOMPI_FIRST_HANDLE)
		return predefined[kind][id];
	int at = (id - GOMPI_FIRST_HANDLE) / CHUNK;
	if (at >= CHUNKS)
		return NULL;
	char *chunk = __atomic_load_n(&chunks[kind][at], __ATOMIC_ACQUIRE);
	if (!chunk && !(chunk = make_chunk(kind, at)))
		return NULL;
	return chunk + (id - GOMPI_FIRST_HANDLE) % CHUNK * sizes[kind];
}

/* ---- Fortran's numbers ---- */

static gompi_handle of_number(int kind, MPI_Fint number)
{
	if (number >= GOMPI_FIRST_HANDLE)
		return gompi_handle_of(kind, number);
	if (kind == KIND_request && number == GOMPI_ID_REQUEST_DONE)
		return &done;
	return number >= 0 ? numbered[kind][number] : NULL;
}

int gompi_number(int kind, int id) { return ((struct gompi_object *)gompi_handle_of(kind, id))->number; }

static MPI_Fint number_of(const void *h)
{
	const struct gompi_object *o = h;
	return !o ? -1 : o == &done ? GOMPI_ID_REQUEST_DONE : o->number;
}

/* MPI 5 calls them by names of its own, too. */
#define FORTRAN(name, type, kind) \
	GOMPI_ALIAS(name##_c2f) \
	GOMPI_ALIAS(name##_f2c) \
	GOMPI_ALIAS(name##_toint) \
	GOMPI_ALIAS(name##_fromint) \
	int PMPI_##name##_toint(type h) { return number_of(h); } \
	type PMPI_##name##_fromint(int number) { return (type)of_number(kind, number); } \
	MPI_Fint PMPI_##name##_c2f(type h) { return number_of(h); } \
	type PMPI_##name##_f2c(MPI_Fint number) { return (type)of_number(kind, number); }
FORTRAN(Comm, MPI_Comm, KIND_comm)
FORTRAN(Type, MPI_Datatype, KIND_datatype)
FORTRAN(Op, MPI_Op, KIND_op)
FORTRAN(Group, MPI_Group, KIND_group)
FORTRAN(Session, MPI_Session, KIND_session)
FORTRAN(Message, MPI_Message, KIND_message)
FORTRAN(Errhandler, MPI_Errhandler, KIND_errhandler)
FORTRAN(Info, MPI_Info, KIND_info)
FORTRAN(File, MPI_File, KIND_file)
FORTRAN(Win, MPI_Win, KIND_win)

/* mpi_grequest_start_ says in the request that its functions are Fortran's, and asks for its number. */
#define number_of(h) (gompi_note_language((struct gompi_object *)(h)), number_of(h))
FORTRAN(Request, MPI_Request, KIND_request)
#undef number_of
#endif
