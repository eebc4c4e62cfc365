package message

import (
	"context"
	"time"

	"gompi/internal/calls"
	"gompi/internal/core/payload"
	"gompi/internal/core/progress"
	"gompi/internal/core/record"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// This file has the waits of goroutines, and the polling; package progress decides who polls.

// A waiter is a goroutine's wait for one or several requests, or for a message.
type waiter struct {
	record.Wait
	e       *Engine
	left    int        // requests that have to end before the waiter is ready
	request *Request   // an awaited request, for the flight recorder; nil when done
	watched []*Request // all awaited requests; lookOn drops complete ones from the end
	probed  *Channel   // where a message is probed for
}

// newWaiter returns a waiter for a wait until ctx ends.
func (e *Engine) newWaiter(ctx context.Context) *waiter {
	var w *waiter
	if n := len(e.waiters); n > 0 {
		w = e.waiters[n-1]
		e.waiters = e.waiters[:n-1]
	} else {
		w = &waiter{e: e}
		w.Init(e.flight, w)
	}
	w.Apart = progress.PlaceOf(ctx).Background
	return w
}

func (e *Engine) freeWaiter(w *waiter) {
	w.Reset()
	w.left, w.request, w.watched, w.probed = 0, nil, w.watched[:0], nil
	e.waiters = append(e.waiters, w)
}

// rouse makes w ready. A nil w is ignored.
func (e *Engine) rouse(w *waiter) {
	if w != nil {
		e.Progress.MakeReady(&w.Waiter)
	}
}

// Stalled implements record.Call.
func (w *waiter) Stalled() {}

// Describe implements record.Call: it describes the request that w began to wait for last, or a
// message to probe.
func (w *waiter) Describe() (c seg.Call, ticket seg.Ticket, collective bool) {
	r := w.request
	switch {
	case w.probed != nil && w.probed.hidden, r != nil && r.ch != nil && r.ch.hidden:
		return seg.Call{}, 0, false
	case w.probed != nil:
		return seg.Call{Comm: w.probed.ID, Kind: calls.Probe, Peer: int(w.Hint), Seq: Any}, 0, false
	case r == nil || r.ch == nil:
		return seg.Call{Kind: calls.Wait, Peer: -1}, 0, false // for a collective that has a record of its own
	}
	kind := calls.Send
	if r.Stage == payload.Posted || r.Stage == payload.Filling {
		kind = calls.Recv
	}
	return seg.Call{
		Comm: r.ch.ID, Kind: kind, Type: r.Buf.Type(), Peer: int(r.peer),
		Count: int64(r.Buf.Len()), Bytes: int64(r.Buf.Size()), Seq: int64(r.tag), Held: w.held(),
	}, 0, false
}

// held returns the number of unexpected messages at the receiver while w is the wait of a send for
// their receives; 0 for other waits.
func (w *waiter) held() int64 {
	if r := w.request; r.starved && r.Stage == payload.Announced {
		return int64(w.e.Peers.Peer(r.peer).Unexpected.AtPeer)
	}
	return 0
}

var _ progress.Source = (*Engine)(nil)

// Poll implements progress.Source.
func (e *Engine) Poll(hint world.Rank) int {
	n := e.Peers.Poll(hint)
	if e.Live.Pending() {
		n += e.Live.HandleEvents()
	}
	if e.Live.Asking() {
		n += e.Live.Decide()
	}
	if e.room.Released >= retryAfter && e.refused > 0 {
		e.fetchRefused()
	}
	return n + e.Progress.LookAtFlags()
}

// Arm implements progress.Source.
func (e *Engine) Arm() bool {
	if !e.Peers.Arm() {
		return false
	}
	if e.Live.Pending() || e.Progress.LookAtFlags() > 0 {
		e.Poll(world.None) // notifies the transports that no goroutine sleeps
		return false
	}
	return true
}

// Pending implements progress.Source.
func (e *Engine) Pending() bool { return e.Live.Asking() || e.Peers.Pending() }

// Deadline implements progress.Source.
func (e *Engine) Deadline() (d time.Duration) {
	d = e.Peers.Deadline()
	if n := e.Live.Deadline(); n > 0 && (d == 0 || n < d) {
		d = n
	}
	return d
}

// Stalled implements progress.Source.
func (e *Engine) Stalled() {
	e.Live.Stalled()
	if e.refused > 0 {
		e.fetchRefused()
	}
	for _, ch := range e.channels {
		clear(ch.sought)
	}
}

// ExitPolling is progress.Exit for blocking calls: if a transport has frames to send, the call
// itself polls once, which costs less than waking another goroutine.
func (e *Engine) ExitPolling() {
	if !e.Progress.Driven() && e.Peers.Pending() {
		e.Poll(world.None)
	}
	e.Progress.Exit()
}

// pollOnce polls, unless another goroutine does, and returns the number of events.
func (e *Engine) pollOnce(hint world.Rank) int {
	if e.Progress.Polled() {
		return 0
	}
	return e.Poll(hint)
}

// spin polls only the peer that r waits for, as often as a driver spins, and reports whether r is
// complete. A wait that ends here needs no waiter. spin keeps the lock, and stops when another
// goroutine wants the lock or drives, or when ctx has ended.
func (e *Engine) spin(ctx context.Context, r *Request) bool {
	if r.Stage == payload.Complete {
		return true
	}
	most := e.Progress.Spin()
	if most == 0 || r.peer < 0 || e.Progress.Polled() {
		return false
	}
	p := e.Peers.Peer(r.peer)
	if !p.Connected() {
		return false
	}
	for polls := range most {
		if p.Poll(); r.Stage == payload.Complete {
			return true
		}
		if e.Progress.Interrupted() || polls%progress.PollsPerCheck == progress.PollsPerCheck-1 && ctx.Err() != nil {
			return false
		}
	}
	return false
}

// outstanding counts r as under way, so that a goroutine drives until r is done. Receives without
// a message are deferred, and so are sends without a receive.
func (e *Engine) outstanding(r *Request) {
	switch {
	case r.Stage == payload.Complete:
		return
	case r.Stage == payload.Posted || r.Stage == payload.Announced:
		r.class = progress.Deferred
	default:
		r.class = progress.Pending
	}
	e.Progress.Begin(r.class)
}

// over undoes outstanding.
func (e *Engine) over(r *Request) {
	e.Progress.End(r.class)
	r.class = progress.None
}
