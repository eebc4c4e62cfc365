package mem

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vectorUnit is a multiple of the bytes that one step of any loop combines.
const vectorUnit = 64

// The levels of vector instructions, each with all lower levels.
const (
	levelAVX2 = iota
	levelAVX512
)

// vectorLoops returns the loops for this processor. The loops for AVX2 also use F16C, which every
// processor with AVX2 has.
func vectorLoops() (l loops) {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ:
		return loopsOf[levelAVX512]
	case x.HasAVX2:
		return loopsOf[levelAVX2]
	}
	return l
}

// canNonTemporal reports whether this processor has non-temporal stores.
var canNonTemporal = cpu.X86.HasAVX2

// copyNonTemporal is CopyNonTemporal of n bytes, whole lines of dst.
func copyNonTemporal(dst, src *byte, n int) { copyNonTemporalAVX2(dst, src, n) }

// fork is Fork of n bytes, whole lines of dst if nonTemporal.
func fork(dst, also, src *byte, n int, nonTemporal bool) {
	if nonTemporal {
		forkNonTemporalAVX2(dst, also, src, n)
	} else {
		forkAVX2(dst, also, src, n)
	}
}

// widenVectors is widen of n elements, whole steps.
func widenVectors(t Type, dst *float32, src unsafe.Pointer, n int) {
	if t == BF16 {
		widenBF16AVX2((*byte)(unsafe.Pointer(dst)), (*byte)(src), n)
	} else {
		widenF16AVX2((*byte)(unsafe.Pointer(dst)), (*byte)(src), n)
	}
}

// narrowVectors is narrow of n elements, whole steps.
func narrowVectors(t Type, dst unsafe.Pointer, src *float32, n int, by float32) {
	if t == BF16 {
		narrowBF16AVX2((*byte)(dst), (*byte)(unsafe.Pointer(src)), n, by)
	} else {
		narrowF16AVX2((*byte)(dst), (*byte)(unsafe.Pointer(src)), n, by)
	}
}

// copyString is CopyString of n bytes.
//
//go:noescape
func copyString(dst, src *byte, n int)
