//go:build !amd64

package mem

import "unsafe"

const (
	noLoop     loop = 0
	vectorUnit      = 64
)

var loopsNonTemporal map[loop]loop

// vectorLoops returns none: there are no vector loops for this processor yet.
func vectorLoops() (l loops) { return l }

func (loop) run(dst *byte, srcs **byte, k, from, to int) { panic("mem: no vector loops") }

func (loop) runNonTemporal(dsts **byte, m int, also *byte, srcs **byte, k, from, to int) {
	panic("mem: no vector loops")
}

const canNonTemporal = false

func copyNonTemporal(dst, src *byte, n int) { panic("mem: no non-temporal stores") }

func copyString(dst, src *byte, n int) { copy(unsafe.Slice(dst, n), unsafe.Slice(src, n)) }

func fork(dst, also, src *byte, n int, nonTemporal bool) { panic("mem: no non-temporal stores") }

func widenVectors(t Type, dst *float32, src unsafe.Pointer, n int) {
	panic("mem: no vector loops")
}

func narrowVectors(t Type, dst unsafe.Pointer, src *float32, n int, by float32) {
	panic("mem: no vector loops")
}
