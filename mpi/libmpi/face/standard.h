/* The handles of MPI 5.0's binary interface are pointers to nothing: the core's numbers, but for those of
 * requests that are gompi's own and below GOMPI_FIRST_HANDLE, where the standard has its own. */
#ifndef GOMPI_STANDARD_H
#define GOMPI_STANDARD_H

typedef int MPI_Fint;
enum { GOMPI_ABOVE = 1 << 30 }; /* what gompi's own requests are shifted by */
extern uint8_t gompi_kinds[GOMPI_FIRST_HANDLE]; /* of predefined handles; 0 of what is none */

static inline int gompi_id(int kind, gompi_handle h)
{
	uintptr_t x = (uintptr_t)h;
	if (x < GOMPI_FIRST_HANDLE)
		return gompi_kinds[x] == kind ? (int)x : GOMPI_BAD;
	return x < GOMPI_ABOVE ? (int)x : x < GOMPI_ABOVE + GOMPI_FIRST_HANDLE && kind == KIND_request ? (int)(x - GOMPI_ABOVE) : GOMPI_BAD;
}

static inline gompi_handle gompi_handle_of(int kind, int id)
{
	if (kind == KIND_request && id < GOMPI_FIRST_HANDLE && id != GOMPI_ID_REQUEST_NULL)
		id += GOMPI_ABOVE;
	return (gompi_handle)(uintptr_t)(id < 0 ? 0 : id);
}

/* The predefined function that copies attributes is 1. */
int gompi_dup(void *h, int keyval, void *extra, void *in, void *out, int *flag);
#define IN_function(x) ((gompi_word)(x) == 1 ? (gompi_word)gompi_dup : (gompi_word)(x))

#endif
