package mem

import (
	"math/bits"
	"unsafe"
)

// Scratch lends memory in powers of two for payload that arrives before its receive. It keeps at
// most keepScratch bytes per size: fresh memory costs a page fault per 4 KiB, ten times the copy.
type Scratch struct {
	free [48][][]byte
}

const keepScratch = 8 << 20

// SizeClass returns the logarithm of the size of the memory that Get(n) is a part of.
func SizeClass(n int) int { return bits.Len(uint(max(n, leastSize) - 1)) }

// leastSize is the size of the smallest memory that Get cuts parts from.
//
//c:const GOMPI_SCRATCH_
const leastSize = 64

// Get returns n bytes aligned for any element type. Their content is arbitrary.
func (s *Scratch) Get(n int) []byte {
	k := SizeClass(n)
	if f := s.free[k]; len(f) > 0 {
		b := f[len(f)-1]
		s.free[k] = f[:len(f)-1]
		return b[:n]
	}
	words := make([]complex128, 1<<k/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 1<<k)[:n]
}

// Put takes back a result of Get.
func (s *Scratch) Put(b []byte) {
	k := bits.Len(uint(cap(b) - 1))
	if cap(b) != 1<<k || len(s.free[k])<<k >= keepScratch {
		return
	}
	s.free[k] = append(s.free[k], b[:cap(b)])
}
