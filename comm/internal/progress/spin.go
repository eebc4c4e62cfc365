package progress

import (
	"sync/atomic"
	"time"
)

// A spinPolicy is how a driver waits before it sleeps. Spinning is for ranks that have a
// processor each: a driver that spins on one that another rank needs delays what it waits for.
// Since processors and quotas come and go while a job runs, that is judged again and again, but
// only by drivers that have spun in vain and would give the processor away anyway.
type spinPolicy struct {
	spin   int // how often it polls in a row
	yields int // how often it then polls, each time after having given the processor away

	most    int // of spin
	fits    func() bool
	every   time.Duration // the least between two calls of it
	stopped int           // how often drivers have stopped spinning
	judged  time.Time
	spins   atomic.Bool // spin is not 0
}

// stopsPerCheck is how often drivers stop spinning between two looks at the clock: a look costs
// a tenth of a yield.
const stopsPerCheck = 64

// SetSpin sets how a driver waits before it sleeps: it polls spin times in a row, if the
// ranks have a processor each, as fits says, and then yields times, each after having given
// the processor away. At first it does neither. again says it anew. It is called while
// goroutines wait, at most once in every, from any goroutine, without the lock.
func (p *Engine) SetSpin(spin, yields int, fits bool, again func() bool, every time.Duration) {
	p.most, p.yields, p.every, p.judged = spin, yields, every, time.Now()
	if p.setSpin(fits); spin > 0 {
		p.fits = again // which may hold on to much
	}
}

func (p *Engine) setSpin(fits bool) {
	p.spin = 0
	if fits {
		p.spin = p.most
	}
	p.spins.Store(p.spin > 0)
}

// Spins reports whether drivers spin. It does not want the lock.
func (p *Engine) Spins() bool { return p.spins.Load() }

// Spin returns how often a driver polls in a row.
func (p *Engine) Spin() int { return p.spin }

// stopSpinning notes that a driver comes to the first of its yields.
func (p *Engine) stopSpinning() {
	if p.stopped++; p.stopped%stopsPerCheck == 0 {
		p.judge()
	}
}

// judge judges anew whether drivers may spin, if it is time to.
func (p *Engine) judge() {
	if p.most == 0 || time.Since(p.judged) < p.every {
		return
	}
	p.judged = time.Now()
	fits := false
	p.unlockWhile(func() { fits = p.fits() })
	p.setSpin(fits)
}
