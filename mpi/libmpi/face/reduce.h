/* How elements are combined, as the kernels of package mem do. */
#ifndef GOMPI_FACE_REDUCE_H
#define GOMPI_FACE_REDUCE_H
#include <math.h>
#include "../shared.h"

#ifdef __x86_64__
#define WIDEST __attribute__((target_clones("avx2", "default")))
#else
#define WIDEST
#endif

/* The least and the largest of floats are not a number if one is, and -0 is less than 0. */
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
#define FLOAT_LESS(x, y) ((x) != (x) ? (x) : (y) != (y) ? (y) : (x) == (y) ? (signbit(x) ? (x) : (y)) : LESS(x, y))
#define FLOAT_MORE(x, y) ((x) != (x) ? (x) : (y) != (y) ? (y) : (x) == (y) ? (signbit(x) ? (y) : (x)) : MORE(x, y))
#define EACH(T, expression) \
	for (int64_t i = 0; i < n; i++) { \
		T x = ((const T *)a)[i], y = ((const T *)b)[i]; \
		((T *)to)[i] = (T)(expression); \
	} \
	return
#define COMBINE(name, T, U, less, more) \
	WIDEST static void combine_##name(int op, void *to, const void *a, const void *b, int64_t n) \
	{ \
		switch (op) { \
		case GOMPI_OP_SUM: EACH(T, (U)x + (U)y); \
		case GOMPI_OP_PROD: EACH(T, (U)x * (U)y); \
		case GOMPI_OP_MIN: EACH(T, less(x, y)); \
		case GOMPI_OP_MAX: EACH(T, more(x, y)); \
		} \
	}
COMBINE(int32, int32_t, uint32_t, LESS, MORE)
COMBINE(int64, int64_t, uint64_t, LESS, MORE)
COMBINE(float, float, float, FLOAT_LESS, FLOAT_MORE)
COMBINE(double, double, double, FLOAT_LESS, FLOAT_MORE)

/* Reduce of package mem: it stores a op b, of n elements each, if C combines such. */
static inline void mem_reduce(int type, int op, void *to, const void *a, const void *b, int64_t n)
{
	switch (type) {
	case GOMPI_TYPE_I32: combine_int32(op, to, a, b, n); return;
	case GOMPI_TYPE_I64: combine_int64(op, to, a, b, n); return;
	case GOMPI_TYPE_F32: combine_float(op, to, a, b, n); return;
	case GOMPI_TYPE_F64: combine_double(op, to, a, b, n); return;
	}
}

#endif
