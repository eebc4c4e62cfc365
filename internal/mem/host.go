package mem

import (
	"errors"
	"fmt"
	"unsafe"
)

// Host is host memory, which the processor loads and stores. It needs no state.
var Host hostSpace

type hostSpace struct{}

// hostAlign is the alignment of allocations: a cache line, and the widest vector.
const hostAlign = 64

// Name returns "host".
func (hostSpace) Name() string { return "host" }

// Alloc returns ordinary Go memory, which lives as long as a Buffer refers to it.
func (hostSpace) Alloc(t Type, n int) (Buffer, error) {
	// bytes, all that a processor addresses: make panics above this limit
	const most = 1 << 47
	if !t.Valid() || uint64(n) > most/uint64(t.Size()) { // a negative n is enormous
		return Buffer{}, fmt.Errorf("cannot allocate %d elements of %v", n, t)
	}
	if n == 0 {
		return Buffer{kind: &hostKinds[t]}, nil
	}
	p := unsafe.Pointer(unsafe.SliceData(make([]byte, n*t.Size()+hostAlign-1)))
	return Buffer{kind: &hostKinds[t], host: unsafe.Add(p, -uintptr(p)%hostAlign), n: n}, nil
}

// Free does nothing: the memory is the garbage collector's.
func (hostSpace) Free(Buffer) {}

// Copy copies src to dst, which may overlap.
func (hostSpace) Copy(dst, src Buffer) error {
	if !dst.IsHost() || !src.IsHost() {
		return fmt.Errorf("copy from %s to %s: want host memory", src.Space().Name(), dst.Space().Name())
	}
	if dst.Size() != src.Size() {
		return fmt.Errorf("copy of %d bytes to a buffer of %d bytes", src.Size(), dst.Size())
	}
	copy(dst.HostSlice(), src.HostSlice())
	return nil
}

// ReduceAll stores srcs[0] op srcs[1] op ... into dst, element by element and in that order, as
// Reduce does for two operands. dst may be one of srcs, else it overlaps none. Avg divides the sum
// by the number of srcs. 16-bit floats accumulate in float32, in which they are divided, too, and
// round once. ReduceAll passes over the operands once: with the vector unit, or in blocks that stay
// in the first-level cache. If dst is one of srcs[2:], it allocates a block for the elements that
// no vector loop combines.
func ReduceAll(op Op, dst Buffer, srcs ...Buffer) error {
	if err := checkAll(op, dst, srcs); err != nil {
		return err
	}
	reduceFrom(op, dst, srcs, vectors[op][dst.Type()].fold(dst, srcs))
	return nil
}

func checkAll(op Op, dst Buffer, srcs []Buffer) error {
	if len(srcs) == 0 {
		return errors.New("reduce of no operands")
	}
	for _, src := range srcs {
		if err := checkOperands(op, dst, src, srcs[0]); err != nil {
			return err
		}
	}
	return nil
}

// reduceFrom stores the combination of srcs into dst from element from on, without vector loops.
func reduceFrom(op Op, dst Buffer, srcs []Buffer, from int) {
	switch t := dst.Type(); {
	case from == dst.n:
	case len(srcs) == 1:
		copy(dst.HostSlice(), srcs[0].HostSlice())
	case t == F16 || t == BF16:
		foldHalf(op, dst, srcs, from)
	default:
		if k := few[op.Base()][t]; k != nil && (dst.n-from)*dst.kind.size < vectorUnit {
			k(dst.host, srcs, from, dst.n)
		} else {
			fold(kernels[op.Base()][t], dst, srcs, from)
		}
		if op == Avg {
			divide(t, unsafe.Add(dst.host, from*dst.kind.size), dst.n-from, len(srcs))
		}
	}
}

// foldBlock is the bytes combined at a time: a block of the result and a block of an operand share
// a first-level cache of 32 KiB with room to spare. Anything from 8 to 256 KiB measured the same
// with loops in Go, which the additions bound, not the memory.
const foldBlock = 8 << 10

// fold stores srcs[0] op srcs[1] op ... into dst, for two operands or more, from element from on.
func fold(k kernel, dst Buffer, srcs []Buffer, from int) {
	size, block := dst.kind.size, foldBlock/dst.kind.size
	if len(srcs) == 2 {
		block = dst.n
	}
	var spare []byte // holds partial results if dst has to be read late
	for _, src := range srcs[2:] {
		if src.host == dst.host {
			spare = make([]byte, min(block, dst.n-from)*size)
			break
		}
	}
	for i := from; i < dst.n; i += block {
		off, m := i*size, min(block, dst.n-i)
		out := unsafe.Add(dst.host, off)
		acc := out
		if spare != nil {
			acc = unsafe.Pointer(unsafe.SliceData(spare))
		}
		in, last := unsafe.Add(srcs[0].host, off), len(srcs)-1
		for _, src := range srcs[1:last] {
			k(acc, in, unsafe.Add(src.host, off), m)
			in = acc
		}
		k(out, in, unsafe.Add(srcs[last].host, off), m)
	}
}

// Divide divides the elements of b, which have averages, by n > 0: the last step of Avg. 16-bit
// floats are divided in float32 and rounded to nearest even.
func Divide(b Buffer, n int) error {
	if !Avg.Defined(b.Type()) || n < 1 || !b.IsHost() {
		return fmt.Errorf("division of %v in %s by %d: want host numbers that have averages, and a positive divisor",
			b.Type(), b.Space().Name(), n)
	}
	divide(b.Type(), b.host, b.n, n)
	return nil
}

// divide divides count numbers of type t at p by n.
func divide(t Type, p unsafe.Pointer, count, n int) {
	switch t {
	case F16, BF16:
		divideHalf(t, p, count, float32(n))
	case F32:
		divideFloat[float32](p, count, n)
	case F64:
		divideFloat[float64](p, count, n)
	case C64:
		divideFloat[float32](p, 2*count, n)
	case C128:
		divideFloat[float64](p, 2*count, n)
	}
}

// divideFloat multiplies by 1/n if 1/n is exact: 2.5 times as fast.
func divideFloat[T float](p unsafe.Pointer, count, n int) {
	x, by := unsafe.Slice((*T)(p), count), T(n)
	if n&(n-1) == 0 {
		inverse := 1 / by
		for i := range x {
			x[i] *= inverse
		}
		return
	}
	for i := range x {
		x[i] /= by
	}
}
