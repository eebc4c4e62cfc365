package engine

import (
	"sync/atomic"
	"time"
)

// patience is how a driver waits before it sleeps. Spinning is for ranks that have a
// processor each: who spins on one that another rank needs is what that one waits for.
// Since processors and quotas come and go while a job runs, that is judged again and
// again, but only by those who have waited in vain and would let go of the processor
// anyway: nobody whose messages come while it spins ever does.
type patience struct {
	spin   int // how often it polls in a row
	yields int // how often it then polls, each time after having given the processor away

	most   int // of spin
	roomy  func() bool
	every  time.Duration // the least between two calls of it
	tired  int           // how often drivers have come to the first of their yields
	judged time.Time
	spins  atomic.Bool // spin is not 0
}

// tiredPerCheck is on every how manieth first yield drivers look at the clock: it costs
// a tenth of a yield.
const tiredPerCheck = 64

// SetPatience sets how a driver waits before it sleeps: it polls spin times in a row,
// if ranks have a processor each, as roomy says, and then yields times, each after
// having given the processor away. At first it does neither. again says it anew; it is
// called while ranks wait, no sooner than every after the last time, from any goroutine,
// without a lock.
func (e *Engine) SetPatience(spin, yields int, roomy bool, again func() bool, every time.Duration) {
	e.lock()
	defer e.unlock()
	e.most, e.yields, e.every, e.judged = spin, yields, every, time.Now()
	if e.setSpin(roomy); spin > 0 {
		e.roomy = again // which may hold on to much
	}
}

func (e *Engine) setSpin(roomy bool) {
	e.spin = 0
	if roomy {
		e.spin = e.most
	}
	e.spins.Store(e.spin > 0)
}

// Patient reports whether drivers spin.
func (e *Engine) Patient() bool { return e.spins.Load() }

// tire notes that a driver comes to the first of its yields.
func (e *Engine) tire() {
	if e.tired++; e.tired%tiredPerCheck == 0 {
		e.judge()
	}
}

// judge judges anew whether drivers may spin, if it is time to.
func (e *Engine) judge() {
	if e.most == 0 || time.Since(e.judged) < e.every {
		return
	}
	e.judged = time.Now()
	roomy := false
	e.breathe(func() { roomy = e.roomy() })
	e.setSpin(roomy)
}
