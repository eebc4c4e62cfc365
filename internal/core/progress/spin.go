package progress

import (
	"sync/atomic"
	"time"
)

// A spinPolicy is how a driver waits before it sleeps. Drivers spin only if each rank has a
// processor: else they delay the awaited message. Processors and quotas change while a job runs, so
// drivers that have spun in vain, and would give the processor away anyway, check the policy again.
type spinPolicy struct {
	spin   int // how often a driver polls in a row
	yields int // how often a driver then polls, giving the processor away before each poll

	most      int           // value of spin while each rank has a processor
	fits      func() bool   // reports whether each rank has a processor
	every     time.Duration // shortest time between two calls of fits
	stopped   int           // how often drivers have stopped spinning
	rechecked time.Time
	spins     atomic.Bool // spin is not 0
}

// stopsPerCheck is the number of times that drivers stop spinning between two looks at the clock,
// each of which costs a tenth of a yield.
const stopsPerCheck = 64

// SetSpin sets how a driver waits before sleeping: it polls spin times in a row if fits, which
// says that each rank has a processor, and then yields times, giving the processor away before
// each poll. Before SetSpin drivers do neither. recheck returns fits anew: any waiting goroutine
// may call it, without the lock, at most once in every.
func (p *Engine) SetSpin(spin, yields int, fits bool, recheck func() bool, every time.Duration) {
	p.most, p.yields, p.every, p.rechecked = spin, yields, every, time.Now()
	if p.setSpin(fits); spin > 0 {
		p.fits = recheck // kept only if needed: the closure may keep much memory alive
	}
}

func (p *Engine) setSpin(fits bool) {
	p.spin = 0
	if fits {
		p.spin = p.most
	}
	p.spins.Store(p.spin > 0)
}

// Spins reports whether drivers spin. The lock may be held or not.
func (p *Engine) Spins() bool { return p.spins.Load() }

// Spin returns the number of polls of a driver in a row.
func (p *Engine) Spin() int { return p.spin }

// stopSpinning counts the drivers that stop spinning and begin to yield.
func (p *Engine) stopSpinning() {
	if p.stopped++; p.stopped%stopsPerCheck == 0 {
		p.recheckSpin()
	}
}

// recheckSpin checks again whether drivers may spin, if the last check was long enough ago.
func (p *Engine) recheckSpin() {
	if p.most == 0 || time.Since(p.rechecked) < p.every {
		return
	}
	p.rechecked = time.Now()
	fits := false
	p.unlockWhile(func() { fits = p.fits() })
	p.setSpin(fits)
}
