// What Go calls of cuBLAS. See blas.c.

#include "driver.h"

const char *gompi_blas_load(const char *library);
const char *gompi_blas_error_name(int status);
const char *gompi_blas_error_text(int status);

gompi_result gompi_blas(uintptr_t ctx, uintptr_t stream);
gompi_result gompi_blas_close(uintptr_t ctx, uintptr_t blas);

typedef struct {
	uintptr_t addr;
	int stride, transposed;
} gompi_matrix;

// gompi_blas_multiply puts c = a b + beta c on the stream of blas. Matrices are column-major: c is m by n, a has k columns.
gompi_result gompi_blas_multiply(uintptr_t ctx, uintptr_t blas, int m, int n, int k,
	gompi_matrix a, gompi_matrix b, float beta, gompi_matrix c);
