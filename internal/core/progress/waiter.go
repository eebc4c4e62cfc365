package progress

import (
	"time"

	"gompi/internal/world"
)

// A Waiter is a goroutine's wait, for one or several events. After Reset it can be used again.
type Waiter struct {
	Hint       world.Rank // the rank that the Source polls first, or None
	Background bool       // the wait of an operation in the background: see spinBudget
	Apart      bool       // no thread of the program's has called its goroutine, as in the background

	owner Owner
	ready bool
	wake  chan struct{} // capacity 1

	asleep   bool        // in sleepers
	parkable bool        // asleep, and receiving from the Parker
	parked   bool        // asleep as the driver
	inKernel bool        // asleep, its thread blocked by the Sleeper
	called   bool        // in the kernel, and to wake
	since    time.Time   // when its goroutine first slept in this wait
	number   uint64      // of the wait, since its first sleep, for Config.Sleeps
	polls    int         // polls in this wait
	due      time.Time   // when the goroutine wakes for the Source's deadline
	dueTimer *time.Timer // made once
	timer    *time.Timer // of stalls, made once

	checkTimer *time.Timer // made once
}

// An Owner learns that its Waiter waits for long. The waiting goroutine calls the Owner.
type Owner interface {
	// Stalled is called once, when the wait has lasted for StallAfter.
	Stalled()
	// Ended is called at the end of a wait for which Stalled was called.
	Ended()
}

// Init prepares a new Waiter. owner may be nil.
func (w *Waiter) Init(owner Owner) {
	w.owner, w.Hint, w.wake = owner, world.None, make(chan struct{}, 1)
}

// isCalled reports whether a thread of the program's has called w's goroutine.
func (w *Waiter) isCalled() bool { return !w.Background && !w.Apart }

// Reset returns w to its state after Init.
func (w *Waiter) Reset() {
	w.Hint, w.Background, w.Apart, w.ready = world.None, false, false, false
	select {
	case <-w.wake:
	default:
	}
}

// Ready reports whether MakeReady has ended w's wait.
func (w *Waiter) Ready() bool { return w.ready }

// Unready lets w wait again.
func (w *Waiter) Unready() { w.ready = false }

// MakeReady ends w's wait.
func (p *Engine) MakeReady(w *Waiter) {
	if w.ready {
		return
	}
	w.ready = true
	if w.asleep {
		p.wake(w)
	}
}

// Send sends to ch, which has capacity 1, to a goroutine that has no Waiter.
func (p *Engine) Send(ch chan<- struct{}) {
	p.woken = true
	select {
	case ch <- struct{}{}:
	default:
	}
}

// wake wakes w's goroutine without making w ready.
func (p *Engine) wake(w *Waiter) {
	if w.inKernel {
		w.called = true
		p.sleeper.Interrupt() // the kernel wakes its thread, or another's: see passOn
		return
	}
	p.Send(w.wake)
}
