package agent

import (
	"bytes"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
)

// A feed is input on its way to ranks.
type feed struct {
	taken int  // bytes received and not yet reported as Consumed
	ended bool // at its end
}

// input passes data on to the ranks with standard input, once they have been started. Empty data
// is the end.
func (a *agent) input(data []byte) {
	if a.preparation.underWay {
		a.preparation.input = append(a.preparation.input, bytes.Clone(data))
		return
	}
	a.feed.taken += len(data)
	a.feed.ended = a.feed.ended || len(data) == 0
	for _, p := range a.ranks {
		if p.stdin >= 0 {
			p.input = append(p.input, data...)
			a.push(p)
		}
	}
	a.consumed()
}

// push writes as much as the rank's pipe takes. A rank that closed its input, or ended, misses
// the rest.
func (a *agent) push(p *process) {
	rest, err := loop.Write(p.stdin, p.input)
	if err != nil {
		a.closeInput(p)
		return
	}
	if p.input = rest; len(rest) > 0 {
		if !p.full {
			p.full = a.loop.Watch(p.stdin, unix.EPOLLOUT, func(uint32) { a.drained(p) }) == nil
		}
		return
	}
	if p.full {
		a.loop.Forget(p.stdin)
		p.full = false
	}
	if a.feed.ended {
		a.closeInput(p)
	}
}

// drained continues with a rank that has read from its pipe.
func (a *agent) drained(p *process) {
	a.push(p)
	a.consumed()
}

func (a *agent) closeInput(p *process) {
	unix.Close(p.stdin)
	p.stdin, p.input, p.full = -1, nil, false
}

// consumed reports to the launcher the bytes that all ranks have taken since the last report.
func (a *agent) consumed() {
	waiting := 0
	for _, p := range a.ranks {
		waiting = max(waiting, len(p.input))
	}
	if n := a.feed.taken - waiting; n > 0 {
		a.feed.taken = waiting
		a.report(&ctl.Consumed{Bytes: n})
	}
}
