//go:build linux && cgo && !gompi_nocuda

// cuBLAS, opened at run time as the driver is: what is declared here has had the
// same binary form since CUDA 6.5. It works in the context that is current.

#include "blas.h"
#include "library.h"

typedef void *handle;

#define REQUIRED(X) \
	X(cublasCreate_v2, (handle *blas)) \
	X(cublasDestroy_v2, (handle blas)) \
	X(cublasSetStream_v2, (handle blas, handle stream)) \
	X(cublasSgemm_v2, (handle blas, int transposed_a, int transposed_b, int m, int n, int k, const float *alpha, \
		uintptr_t a, int stride_a, uintptr_t b, int stride_b, const float *beta, uintptr_t c, int stride_c))

REQUIRED(DECLARE)

static const char *(*p_cublasGetStatusName)(int status), *(*p_cublasGetStatusString)(int status); // since CUDA 11.4

// gompi_blas_load opens the library and returns what is wrong, or NULL.
const char *gompi_blas_load(const char *library) {
	OPEN(library)
	REQUIRED(REQUIRE)
	*(void **)&p_cublasGetStatusName = dlsym(lib, "cublasGetStatusName");
	*(void **)&p_cublasGetStatusString = dlsym(lib, "cublasGetStatusString");
	return NULL;
}

const char *gompi_blas_error_name(int status) { return p_cublasGetStatusName ? p_cublasGetStatusName(status) : "status"; }

const char *gompi_blas_error_text(int status) {
	return p_cublasGetStatusString ? p_cublasGetStatusString(status) : "this cuBLAS has no description";
}

#define TRY(name, ...) \
	do { \
		r.call = #name; \
		r.code = p_##name(__VA_ARGS__); \
		if (r.code) return r; \
	} while (0)

static gompi_result create(void *stream) {
	gompi_result r = {0};
	handle blas = NULL;
	TRY(cublasCreate_v2, &blas);
	r.value = (uintptr_t)blas;
	TRY(cublasSetStream_v2, blas, stream);
	return r;
}

gompi_result gompi_blas(uintptr_t ctx, uintptr_t stream) { return gompi_within(ctx, create, (void *)stream); }

static gompi_result destroy(void *blas) {
	gompi_result r = {0};
	TRY(cublasDestroy_v2, blas);
	return r;
}

gompi_result gompi_blas_close(uintptr_t ctx, uintptr_t blas) { return gompi_within(ctx, destroy, (void *)blas); }

typedef struct {
	handle blas;
	int m, n, k;
	gompi_matrix a, b, c;
	float beta;
} product;

static gompi_result multiply(void *args) {
	gompi_result r = {0};
	product *p = args;
	float one = 1;
	TRY(cublasSgemm_v2, p->blas, p->a.transposed, p->b.transposed, p->m, p->n, p->k, &one,
		p->a.addr, p->a.stride, p->b.addr, p->b.stride, &p->beta, p->c.addr, p->c.stride);
	return r;
}

gompi_result gompi_blas_multiply(uintptr_t ctx, uintptr_t blas, int m, int n, int k,
	gompi_matrix a, gompi_matrix b, float beta, gompi_matrix c) {
	product p = {(handle)blas, m, n, k, a, b, c, beta};
	return gompi_within(ctx, multiply, &p);
}
