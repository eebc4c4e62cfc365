package progress

import (
	"time"

	"gompi/internal/world"
)

// A Waiter is one goroutine's wait, for one or several things. It can be used again after Reset.
type Waiter struct {
	Hint       world.Rank // whom the Source is to look at first, None if nobody is
	Background bool       // an operation's in the background: it never spins

	owner Owner
	ready bool
	wake  chan struct{} // capacity 1

	asleep   bool        // in sleepers
	parkable bool        // asleep, and listening to the Parker
	parked   bool        // asleep as the driver
	due      time.Time   // when it wakes for the Source's deadline
	dueTimer *time.Timer // made once
	timer    *time.Timer // of stalls, made once
}

// An Owner is told when its Waiter waits for long, on the goroutine that waits.
type Owner interface {
	// Stalled tells that the wait has lasted for StallAfter, or once more so long.
	Stalled()
	// Ended tells that a wait has ended of which Stalled has told.
	Ended()
}

// Init readies a new Waiter. owner may be nil.
func (w *Waiter) Init(owner Owner) {
	w.owner, w.Hint, w.wake = owner, world.None, make(chan struct{}, 1)
}

// Reset makes w as Init left it.
func (w *Waiter) Reset() {
	w.Hint, w.Background, w.ready = world.None, false, false
	select {
	case <-w.wake:
	default:
	}
}

// Ready reports whether what w waits for is there.
func (w *Waiter) Ready() bool { return w.ready }

// Unready has w wait for more.
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

// wake wakes w's goroutine without making it ready.
func (p *Engine) wake(w *Waiter) {
	p.woken = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
