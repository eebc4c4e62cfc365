/* Open MPI's objects. */
#ifndef GOMPI_OPENMPI_H
#define GOMPI_OPENMPI_H
#include "face.h"
#ifdef OPEN_MPI
#include <stddef.h>

/* What a handle points to. Programs know an object by its address alone. The Fortran and C++
 * libraries of Open MPI 4.1 read and write these fields, which are known by disassembly. */
struct gompi_object {
	uint32_t magic; /* MAGIC + kind */
	int32_t id;
	char rest[0x10 - 8];
	int32_t peers;        /* of a communicator: read as the size of a group */
	char rest1[4];
	int32_t group_number; /* Fortran's, too */
	char rest2[0x54 - 0x1c];
	int32_t language; /* of an error handler; of an operator, a flag that is set when it was made */
	void *functions[2];
	int32_t number; /* Fortran's: read of requests */
	char rest3[0x78 - 0x6c];
	void *dispatch; /* of an error handler in C++: how it is called */
	char rest4[0xc0 - 0x80];
	char functions_in_c; /* of a generalized request */
	char rest5[0xd0 - 0xc1];
	void *type_attributes; /* what ompi_attr_get_* are given: here, the object itself */
	char rest6[0xe8 - 0xd8];
	uint32_t flags; /* of a communicator: its C++ class */
	char rest7[0xf0 - 0xec];
	void *win_attributes;
	void *groups[2]; /* the local and the remote one: here, the object itself */
	char rest8[0x110 - 0x108];
	void *comm_attributes;
	char rest9[0x148 - 0x118]; /* the error handler and its kind */
};
_Static_assert(offsetof(struct gompi_object, peers) == 0x10, "");
_Static_assert(offsetof(struct gompi_object, group_number) == 0x18, "");
_Static_assert(offsetof(struct gompi_object, functions) == 0x58, "");
_Static_assert(offsetof(struct gompi_object, number) == 0x68, "");
_Static_assert(offsetof(struct gompi_object, dispatch) == 0x78, "");
_Static_assert(offsetof(struct gompi_object, functions_in_c) == 0xc0, "");
_Static_assert(offsetof(struct gompi_object, type_attributes) == 0xd0, "");
_Static_assert(offsetof(struct gompi_object, flags) == 0xe8, "");
_Static_assert(offsetof(struct gompi_object, win_attributes) == 0xf0, "");
_Static_assert(offsetof(struct gompi_object, groups) == 0xf8, "");
_Static_assert(offsetof(struct gompi_object, comm_attributes) == 0x110, "");

void gompi_note_language(struct gompi_object *request);

#endif
#endif
