package mem

import "unsafe"

// A loop is a loop of kernels_amd64.s, written for the vector unit: it combines any number of
// operands in one pass. noLoop is none.
type loop uint8

// loops holds the loop of each operator for each type, noLoop if the loop in Go is the best one.
type loops [numOps][numTypes]loop

const (
	// mostOperands is the largest number of operands of a loop.
	mostOperands = 64
	// stretch is the number of bytes that a loop combines in one call, which the scheduler cannot
	// interrupt: some microseconds.
	stretch = 64 << 10
)

//go:generate go -C asm run . -out ../kernels_amd64.s -stubs ../stubs_amd64.go -pkg mem

// over combines the first bytes of the operands, as many of n as fill whole vectors, and returns
// their number.
func (l loop) over(dst *byte, srcs []*byte, n int) int {
	n -= n % vectorUnit
	for at := 0; at < n; at += stretch {
		l.run(dst, &srcs[0], len(srcs), at, min(at+stretch, n))
	}
	return n
}

// kernel returns l as a kernel for elements of the given size; rest combines elements that do not
// fill a vector.
func (l loop) kernel(size int, rest kernel) kernel {
	return func(dst, a, b unsafe.Pointer, n int) {
		if n*size < vectorUnit {
			rest(dst, a, b, n)
			return
		}
		srcs := [2]*byte{(*byte)(a), (*byte)(b)}
		done := l.over((*byte)(dst), srcs[:], n*size)
		if left := n - done/size; left > 0 {
			rest(unsafe.Add(dst, done), unsafe.Add(a, done), unsafe.Add(b, done), left)
		}
	}
}

// fold stores the combination of two srcs or more into dst, which may be any of them, and returns
// the number of elements combined: all that fill whole vectors.
func (l loop) fold(dst Buffer, srcs []Buffer) int {
	size := dst.kind.size
	if l == noLoop || len(srcs) < 2 || len(srcs) > mostOperands || dst.n*size < vectorUnit {
		return 0
	}
	var at [mostOperands]*byte
	for i := range srcs {
		at[i] = (*byte)(srcs[i].host)
	}
	return l.over((*byte)(dst.host), at[:len(srcs)], dst.n*size) / size
}

// foldNonTemporal stores the combination of two srcs or more with non-temporal stores into dsts,
// and into also if also has elements. None of dsts is one of srcs, and each begins at a line.
// foldNonTemporal returns the number of elements combined: all that fill whole vectors, or none.
func (l loop) foldNonTemporal(dsts []Buffer, also Buffer, srcs []Buffer) int {
	size, n := dsts[0].kind.size, dsts[0].n*dsts[0].kind.size/vectorUnit*vectorUnit
	if l == noLoop || len(srcs) < 2 || max(len(srcs), len(dsts)) > mostOperands || n == 0 {
		return 0
	}
	var from, to [mostOperands]*byte
	for i := range srcs {
		from[i] = (*byte)(srcs[i].host)
	}
	for i := range dsts {
		to[i] = (*byte)(dsts[i].host)
	}
	for at := 0; at < n; at += stretch {
		l.runNonTemporal(&to[0], len(dsts), (*byte)(also.host), &from[0], len(srcs), at, min(at+stretch, n))
	}
	return n / size
}
