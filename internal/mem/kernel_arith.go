package mem

import "unsafe"

// The loops of the arithmetic operators. Each is compiled once per element type, without calls or
// bounds checks.

type signed interface{ int8 | int16 | int32 | int64 }

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

// operands returns elements [i, n) at dst, a and b. It is inlined, so that the compiler knows the
// lengths to be equal: a loop over one slice indexes all three without checks.
func operands[T any](dst, a, b unsafe.Pointer, i, n int) (d, x, y []T) {
	off, count := uintptr(i)*unsafe.Sizeof(*new(T)), n-i
	if count == 0 { // the pointers would leave their allocations
		dst, a, b, off = nil, nil, nil, 0
	}
	d = unsafe.Slice((*T)(unsafe.Add(dst, off)), count)
	x = unsafe.Slice((*T)(unsafe.Add(a, off)), count)
	y = unsafe.Slice((*T)(unsafe.Add(b, off)), count)
	return d, x, y
}

func sum[T signed | unsigned | float | complex64 | complex128](dst, a, b unsafe.Pointer, n int) {
	d8, x8, y8 := operands[[8]T](dst, a, b, 0, n/8)
	for i := range d8 {
		d, x, y := &d8[i], &x8[i], &y8[i]
		d[0] = x[0] + y[0]
		d[1] = x[1] + y[1]
		d[2] = x[2] + y[2]
		d[3] = x[3] + y[3]
		d[4] = x[4] + y[4]
		d[5] = x[5] + y[5]
		d[6] = x[6] + y[6]
		d[7] = x[7] + y[7]
	}
	d, x, y := operands[T](dst, a, b, n-n%8, n)
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func prod[T signed | unsigned | float](dst, a, b unsafe.Pointer, n int) {
	d8, x8, y8 := operands[[8]T](dst, a, b, 0, n/8)
	for i := range d8 {
		d, x, y := &d8[i], &x8[i], &y8[i]
		d[0] = x[0] * y[0]
		d[1] = x[1] * y[1]
		d[2] = x[2] * y[2]
		d[3] = x[3] * y[3]
		d[4] = x[4] * y[4]
		d[5] = x[5] * y[5]
		d[6] = x[6] * y[6]
		d[7] = x[7] * y[7]
	}
	d, x, y := operands[T](dst, a, b, n-n%8, n)
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

// prodComplex multiplies complex numbers whose parts are T. The conversions forbid fused
// multiply-add, with which a*b and b*a could differ, and so the results of two ranks.
func prodComplex[T float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[[2]T](dst, a, b, 0, n)
	for i := range d {
		v, w := x[i], y[i]
		d[i] = [2]T{T(v[0]*w[0]) - T(v[1]*w[1]), T(v[0]*w[1]) + T(v[1]*w[0])}
	}
}

func minimum[T signed | unsigned | float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func maximum[T signed | unsigned | float](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}
