/* MPICH's handles: integers. Those that programs make carry their kind in the upper bits, and the core's number below. */
#include "face.h"
#if !defined OPEN_MPI && !defined GOMPI_STANDARD

/* The kinds of MPICH, and the bits of a handle. */
static const uint32_t kind_bits[KINDS] = {
	[KIND_comm] = 0x84000000, [KIND_group] = 0x88000000, [KIND_datatype] = 0x8c000000, [KIND_errhandler] = 0x94000000,
	[KIND_op] = 0x98000000, [KIND_info] = 0x9c000000, [KIND_request] = 0xac000000, [KIND_message] = 0xac000000,
	[KIND_win] = 0xa0000000, [KIND_session] = 0xb8000000, [KIND_file] = 0x44000000, /* a file is a pointer: these bits are in no sign */
};
enum { ID_BITS = 26 };

/* Predefined handles differ in their lowest byte, but for some types of pairs: their kind is that of programs' datatypes. */
enum { PLACES = 1024 };
static struct {
	uint32_t handle;
	int id;
} places[KINDS][PLACES];
static uint32_t predefined[KINDS][GOMPI_FIRST_HANDLE];

static unsigned place_of(uint32_t handle) { return (handle ^ handle >> 20) % PLACES; }

void gompi_set_up_handles(void)
{
	for (const struct gompi_predefined *p = gompi_predefined; p->kind; p++) {
		uint32_t h = (uint32_t)p->handle;
		unsigned at = place_of(h);
		while (places[p->kind][at].id && places[p->kind][at].handle != h)
			at = (at + 1) % PLACES;
		if (!places[p->kind][at].id) { /* two names may have one handle */
			places[p->kind][at].handle = h;
			places[p->kind][at].id = p->id;
		}
		predefined[p->kind][p->id] = h;
	}
	predefined[KIND_request][GOMPI_ID_REQUEST_DONE] = kind_bits[KIND_request] | GOMPI_ID_REQUEST_DONE;
	for (int id = GOMPI_ID_FIRST_HELD; id < GOMPI_FIRST_HANDLE; id++)
		predefined[KIND_request][id] = kind_bits[KIND_request] | (uint32_t)id;
}

int gompi_id(int kind, gompi_handle handle)
{
	uint32_t h = (uint32_t)handle, bits = kind_bits[kind], id = h & ((1u << ID_BITS) - 1);
	if (h == (bits | id) && (id >= GOMPI_FIRST_HANDLE || (kind == KIND_request && (id == GOMPI_ID_REQUEST_DONE || id >= GOMPI_ID_FIRST_HELD))))
		return (int)id;
	for (unsigned at = place_of(h); places[kind][at].id; at = (at + 1) % PLACES)
		if (places[kind][at].handle == h)
			return places[kind][at].id;
	return GOMPI_BAD;
}

gompi_handle gompi_handle_of(int kind, int id)
{
	if (id < 0)
		return 0;
	return (gompi_handle)(id < GOMPI_FIRST_HANDLE ? predefined[kind][id] : kind_bits[kind] | (uint32_t)id);
}

/* Fortran's numbers, and those of MPI 5, are the handles. Headers have macros of some names, hence the parentheses. */
#define NUMBERS(name, type) \
	GOMPI_ALIAS(name##_c2f) \
	GOMPI_ALIAS(name##_f2c) \
	GOMPI_ALIAS(name##_toint) \
	GOMPI_ALIAS(name##_fromint) \
	MPI_Fint (PMPI_##name##_c2f)(type h) { return (MPI_Fint)(intptr_t)h; } \
	type (PMPI_##name##_f2c)(MPI_Fint number) { return (type)(intptr_t)number; } \
	int PMPI_##name##_toint(type h) { return (int)(intptr_t)h; } \
	type PMPI_##name##_fromint(int number) { return (type)(intptr_t)number; }
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
NUMBERS(File, MPI_File) /* a pointer, which leads nowhere: the null one is 0 */
#endif
