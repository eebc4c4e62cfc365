package dtypes

import (
	"cmp"
	"unsafe"

	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
)

// A pair is an element of MINLOC and MAXLOC, as a struct of C: a value and then an int.
type pair[T cmp.Ordered] struct {
	value T
	index int32
}

// A twin is a pair of Fortran's: its index is of the value's type.
type twin[T cmp.Ordered] struct{ value, index T }

var pairCombiners = map[string]func(kind mem.Op, in, inout abi.Addr, n int){
	"MPI_FLOAT_INT":         combinePair[float32],
	"MPI_DOUBLE_INT":        combinePair[float64],
	"MPI_LONG_INT":          combinePair[int64],
	"MPI_SHORT_INT":         combinePair[int16],
	"MPI_2INT":              combinePair[int32],
	"MPI_2INTEGER":          combineTwin[int32],
	"MPI_2REAL":             combineTwin[float32],
	"MPI_2DOUBLE_PRECISION": combineTwin[float64],
}

func combinesPairs(name string) bool { return pairCombiners[name] != nil }

func combinePair[T cmp.Ordered](kind mem.Op, in, inout abi.Addr, n int) {
	a, b := unsafe.Slice((*pair[T])(in.Pointer()), n), unsafe.Slice((*pair[T])(inout.Pointer()), n)
	for i := range a {
		if goesBefore(kind, a[i].value, b[i].value, a[i].index, b[i].index) {
			b[i].value, b[i].index = a[i].value, a[i].index
		}
	}
}

func combineTwin[T cmp.Ordered](kind mem.Op, in, inout abi.Addr, n int) {
	a, b := unsafe.Slice((*twin[T])(in.Pointer()), n), unsafe.Slice((*twin[T])(inout.Pointer()), n)
	for i := range a {
		if goesBefore(kind, a[i].value, b[i].value, a[i].index, b[i].index) {
			b[i] = a[i]
		}
	}
}

// goesBefore reports whether the pair (v, i) is the result of it and (w, j): of equal values the
// pair with the lower index is.
func goesBefore[T, I cmp.Ordered](kind mem.Op, v, w T, i, j I) bool {
	if v == w {
		return i < j
	}
	return (v < w) == (kind == mem.MinLoc)
}
