package engine

import (
	"context"
	"time"

	"gompi/comm/internal/progress"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// This file is what goroutines wait for, and what there is to poll. Package progress decides
// which of them polls, and which sleep.

// A waiter is one goroutine's wait: for one or several requests, for a message, or for a flag.
type waiter struct {
	progress.Waiter
	e        *Engine
	left     int       // requests that have to end before it is ready
	round    *Round    // the collective waited for
	flagWait *FlagWait // the collective waited for, if it goes through shared memory

	request  *Request // one of those waited for, for the flight recorder; nil when it is done
	probed   *Channel // where a message is probed for
	voted    *wire.Vote
	recorded bool // the wait is in the flight recorder
	ticket   seg.Ticket
}

func (e *Engine) newWaiter() *waiter {
	if n := len(e.waiters); n > 0 {
		w := e.waiters[n-1]
		e.waiters = e.waiters[:n-1]
		return w
	}
	w := &waiter{e: e}
	w.Init(w)
	return w
}

func (e *Engine) freeWaiter(w *waiter) {
	w.Reset()
	w.left, w.round, w.flagWait = 0, nil, nil
	w.request, w.probed, w.voted, w.recorded = nil, nil, nil, false
	e.waiters = append(e.waiters, w)
}

// rouse makes w ready. It does nothing if w is nil.
func (e *Engine) rouse(w *waiter) {
	if w != nil {
		e.progress.MakeReady(&w.Waiter)
	}
}

// Stalled implements progress.Owner: it sends the members waited for the call of this rank.
func (w *waiter) Stalled() {
	w.record()
	switch {
	case w.round != nil:
		w.round.stalled()
	case w.flagWait != nil:
		w.flagWait.stalled()
	}
}

var _ progress.Source = (*Engine)(nil)

// othersEvery is how many polls are made for each that includes the transports which do not reach
// the awaited peer: a poll of sockets costs as much as ten of memory.
const othersEvery = 32

// Poll implements progress.Source. It looks first at rank hint, and mostly only at the transport
// that reaches it.
func (e *Engine) Poll(hint world.Rank) int {
	n := 0
	e.polls++
	var only transport.Transport
	if hint >= 0 && e.polls%othersEvery != 0 {
		only = e.peer(hint).tr
	}
	for _, t := range e.transports {
		if only == nil || t == only {
			n += t.Poll(hint)
		}
	}
	if e.cfg.Boot != nil && e.cfg.Boot.Pending() {
		n += e.news()
	}
	if !e.suspects.Empty() {
		n += e.judgeSuspects()
	}
	if e.released >= retryAfter && e.refused > 0 {
		e.fetchRefused()
	}
	return n + e.look()
}

// Arm implements progress.Source.
func (e *Engine) Arm() bool {
	for _, t := range e.transports {
		if !t.Arm() {
			return false
		}
	}
	if e.cfg.Boot != nil && e.cfg.Boot.Pending() || e.look() > 0 {
		e.Poll(world.None) // tells the transports that nobody sleeps
		return false
	}
	return true
}

// Pending implements progress.Source.
func (e *Engine) Pending() bool { return !e.suspects.Empty() || e.unsent() }

// unsent reports whether a transport has frames or connections that need Poll.
func (e *Engine) unsent() bool {
	for _, t := range e.progressers {
		if t.Pending() {
			return true
		}
	}
	return false
}

// Deadline implements progress.Source.
func (e *Engine) Deadline() (d time.Duration) {
	for _, t := range e.progressers {
		if n := time.Duration(t.Deadline()); n > 0 && (d == 0 || n < d) {
			d = n
		}
	}
	if !e.suspects.Empty() {
		if n := max(time.Until(e.suspects.Front().due), 1); d == 0 || n < d {
			d = n
		}
	}
	return d
}

// Stalled implements progress.Source: it finds out whether the ranks waited for have left.
func (e *Engine) Stalled() {
	if e.cfg.Left != nil {
		e.dismissLeft()
	}
	if e.refused > 0 {
		e.fetchRefused()
	}
	for _, ch := range e.channels {
		ch.askAwaited()
		clear(ch.sought)
	}
}

// exitPolling is progress.Exit for blocking calls: if a transport has something to send, they poll
// once themselves, which costs less than waking another goroutine.
func (e *Engine) exitPolling() {
	if !e.progress.Driven() && e.unsent() {
		e.Poll(world.None)
	}
	e.progress.Exit()
}

// pollOnce polls, unless another goroutine does, and returns the number of events.
func (e *Engine) pollOnce(hint world.Rank) int {
	if e.progress.Polled() {
		return 0
	}
	return e.Poll(hint)
}

// spin polls only the peer that r waits for, as often as a driver spins, and reports whether r is
// complete. A wait that ends here needs no waiter. spin keeps the lock. It stops when another
// goroutine wants the lock or drives, or when ctx has ended.
func (e *Engine) spin(ctx context.Context, r *Request) bool {
	if r.stage == complete {
		return true
	}
	most := e.progress.Spin()
	if most == 0 || r.peer < 0 || e.progress.Polled() {
		return false
	}
	t := e.peer(r.peer).tr
	if t == nil {
		return false
	}
	for polls := range most {
		if t.Poll(r.peer); r.stage == complete {
			return true
		}
		if e.progress.Interrupted() || polls%progress.PollsPerCheck == progress.PollsPerCheck-1 && ctx.Err() != nil {
			return false
		}
	}
	return false
}

// SetSpinPolicy sets how a driver waits before it sleeps: see progress.SetSpin.
func (e *Engine) SetSpinPolicy(spin, yields int, fits bool, again func() bool, every time.Duration) {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.progress.SetSpin(spin, yields, fits, again, every)
}

// Spins reports whether drivers spin.
func (e *Engine) Spins() bool { return e.progress.Spins() }

// outstanding counts r as under way, so that a goroutine drives for it until it is done. Receives
// of eager size are deferred: their messages are sent before the receiver asks.
func (e *Engine) outstanding(r *Request) {
	switch {
	case r.stage == complete:
		return
	case r.stage == posted && r.buf.Size() <= e.cfg.Eager:
		r.class = progress.Deferred
	default:
		r.class = progress.Pending
	}
	e.progress.Begin(r.class)
}

// over undoes outstanding.
func (e *Engine) over(r *Request) {
	e.progress.End(r.class)
	r.class = progress.None
}
