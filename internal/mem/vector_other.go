//go:build !amd64

package mem

const (
	noLoop     loop = 0
	vectorUnit      = 64
)

var loopsPast map[loop]loop

// vectorLoops returns none: there are no vector loops for this processor yet.
func vectorLoops() (l loops) { return l }

func (loop) run(dst *byte, srcs **byte, k, from, to int) { panic("mem: no vector loops") }

func (loop) runPast(dsts **byte, m int, also *byte, srcs **byte, k, from, to int) {
	panic("mem: no vector loops")
}

const canStream = false

func stream(dst, src *byte, n int) { panic("mem: no stores past the caches") }

func fork(dst, also, src *byte, n int, past bool) { panic("mem: no stores past the caches") }
