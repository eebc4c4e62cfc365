//go:build linux && cgo && !gompi_nocuda

package driver

// #include <stdlib.h>
// #include "blas.h"
import "C"

import (
	"errors"
	"strings"
	"sync"
	"unsafe"
)

// blasFailed returns r's error, nil for success. It is cuBLAS's, or the driver's if the context
// could not be made current.
func blasFailed(r C.gompi_result) error {
	if r.code == 0 || !strings.HasPrefix(C.GoString(r.call), "cublas") {
		return failed(r)
	}
	return &Error{Call: C.GoString(r.call), Code: int(r.code),
		Name: C.GoString(C.gompi_blas_error_name(r.code)), Text: C.GoString(C.gompi_blas_error_text(r.code))}
}

var loadBLAS struct {
	sync.Once
	err error
}

// LoadBLAS opens the named library as cuBLAS, or the first of the usual names if it is "", once.
func LoadBLAS(library string) error {
	loadBLAS.Do(func() { loadBLAS.err = openBLAS(library) })
	return loadBLAS.err
}

func openBLAS(library string) error {
	names := []string{library}
	if library == "" {
		names = []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"}
	}
	var err error
	for _, name := range names {
		s := C.CString(name)
		defer C.free(unsafe.Pointer(s))
		wrong := C.gompi_blas_load(s)
		if wrong == nil {
			return nil
		}
		err = errors.New(C.GoString(wrong))
	}
	return err
}

// NewBLAS returns a handle of cuBLAS that enqueues its work on s.
func NewBLAS(c Context, s Stream) (BLAS, error) {
	r := C.gompi_blas(C.uintptr_t(c), C.uintptr_t(s))
	return BLAS(r.value), blasFailed(r)
}

// CloseBLAS frees b.
func CloseBLAS(c Context, b BLAS) error {
	return blasFailed(C.gompi_blas_close(C.uintptr_t(c), C.uintptr_t(b)))
}

// Multiply enqueues z = x y + beta z on the stream of b: z has m rows and n columns, x has k
// columns, and all are column-major.
func Multiply(c Context, b BLAS, m, n, k int, x, y Operand, beta float32, z Operand) error {
	return blasFailed(C.gompi_blas_multiply(C.uintptr_t(c), C.uintptr_t(b), C.int(m), C.int(n), C.int(k),
		x.matrix(), y.matrix(), C.float(beta), z.matrix()))
}

func (o Operand) matrix() C.gompi_matrix {
	m := C.gompi_matrix{addr: C.uintptr_t(o.Addr), stride: C.int(o.Stride)}
	if o.Transposed {
		m.transposed = 1
	}
	return m
}
