//go:build linux && cgo

/* Operators of long double, which Go has no numbers for. */
#include <complex.h>
#include <stdint.h>

/* Numbers of package mpi's handles. */
enum {
	OP_SUM = 0x21, OP_MIN, OP_MAX, OP_PROD, OP_MINLOC = 0x38, OP_MAXLOC,
	LONG_DOUBLE = 0x220, C_LONG_DOUBLE_COMPLEX = 0x224, CXX_LONG_DOUBLE_COMPLEX = 0x225,
	LONG_DOUBLE_INT = 0x22d,
};

struct long_double_int {
	long double value;
	int index;
};

#define EACH(type, expression) \
	do { \
		const type *a = in; \
		type *b = inout; \
		for (int32_t i = 0; i < n; i++) b[i] = (expression); \
	} while (0); return 1

static int combine_real(int32_t op, const void *in, void *inout, int32_t n)
{
	switch (op) {
	case OP_SUM: EACH(long double, a[i] + b[i]);
	case OP_PROD: EACH(long double, a[i] * b[i]);
	case OP_MIN: EACH(long double, a[i] < b[i] ? a[i] : b[i]);
	case OP_MAX: EACH(long double, a[i] > b[i] ? a[i] : b[i]);
	}
	return 0;
}

static int combine_complex(int32_t op, const void *in, void *inout, int32_t n)
{
	switch (op) {
	case OP_SUM: EACH(long double complex, a[i] + b[i]);
	case OP_PROD: EACH(long double complex, a[i] * b[i]);
	}
	return 0;
}

static int combine_pair(int32_t op, const void *in, void *inout, int32_t n)
{
	const struct long_double_int *a = in;
	struct long_double_int *b = inout;
	for (int32_t i = 0; i < n; i++)
		if (a[i].value == b[i].value ? a[i].index < b[i].index : (a[i].value < b[i].value) == (op == OP_MINLOC)) {
			b[i].value = a[i].value;
			b[i].index = a[i].index;
		}
	return 1;
}

/* gompi_combine reports whether it has the operator. */
int gompi_combine(int32_t op, int32_t datatype, void *in, void *inout, int32_t n)
{
	switch (datatype) {
	case LONG_DOUBLE: return combine_real(op, in, inout, n);
	case C_LONG_DOUBLE_COMPLEX:
	case CXX_LONG_DOUBLE_COMPLEX: return combine_complex(op, in, inout, n);
	case LONG_DOUBLE_INT: return combine_pair(op, in, inout, n);
	}
	return 0;
}
