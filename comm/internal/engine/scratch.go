package engine

import (
	"math/bits"
	"unsafe"
)

// scratch lends memory for payload that arrives before its receive, in powers of two. Fresh
// memory costs a page fault per 4 KiB, ten times the copy it is for. So memory that comes back
// is kept: at most keep bytes per size.
type scratch struct {
	free [48][][]byte
}

const keepScratch = 8 << 20

// sizeClass returns the logarithm of the size of the memory that get(n) is a part of.
func sizeClass(n int) int { return bits.Len(uint(max(n, 64) - 1)) }

// get returns n bytes aligned for any element type. Their content is arbitrary.
func (s *scratch) get(n int) []byte {
	k := sizeClass(n)
	if f := s.free[k]; len(f) > 0 {
		b := f[len(f)-1]
		s.free[k] = f[:len(f)-1]
		return b[:n]
	}
	words := make([]complex128, 1<<k/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 1<<k)[:n]
}

func (s *scratch) put(b []byte) {
	k := bits.Len(uint(cap(b) - 1))
	if cap(b) != 1<<k || len(s.free[k])<<k >= keepScratch {
		return
	}
	s.free[k] = append(s.free[k], b[:cap(b)])
}
