package message

import (
	"context"
	"sync"

	"gompi/internal/core/liveness"
	"gompi/internal/core/match"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/world"
	"gompi/transport"
)

// A Channel is the traffic of a communicator: its point-to-point queues and its collectives.
// Ranks are ranks of the communicator unless stated otherwise.
type Channel struct {
	liveness.Comm
	Engine      *Engine
	q           match.Queues[Request, Kept]
	probes      []*waiter    // of blocking probes
	sought      map[int]bool // targets of probes without wait, in vain since the last Stalled
	collectives Collectives
	copies      sync.WaitGroup // that run
	closed      bool
	hidden      bool // Hide was called
}

// Open makes the Channel with the given context id among the given world ranks, nil for all, and
// handles the frames for this Channel that have arrived already.
func (e *Engine) Open(id uint64, members []world.Rank) *Channel { return e.OpenAs(id, members, nil) }

// OpenAs is Open of members that have exchanged the given counters, by rank, nil if they have not.
func (e *Engine) OpenAs(id uint64, members []world.Rank, counters []uint32) *Channel {
	e.Progress.Lock()
	defer e.Progress.Exit()
	ch := &Channel{Engine: e, sought: map[int]bool{}}
	e.Live.Open(&ch.Comm, ch, id, members, counters)
	ch.collectives = e.cfg.Collectives(ch)
	e.channels[id] = ch
	ch.CatchUp()
	for _, m := range e.early[id] {
		ch.adopt(m)
	}
	delete(e.early, id)
	ch.DismissLost()
	return ch
}

// channel returns the Channel with a context id, nil if there is none.
func (e *Engine) channel(id uint64) *Channel {
	if ch := e.latest; ch != nil && ch.ID == id {
		return ch
	}
	ch := e.channels[id]
	if ch != nil {
		e.latest = ch
	}
	return ch
}

// adopt handles a frame that came before Open.
func (ch *Channel) adopt(m *Kept) {
	src := ch.Member(m.Peer.Rank)
	if src < 0 || ch.Broken() != nil {
		ch.Engine.Drop(m)
		return
	}
	m.Src = src
	switch m.Kind {
	case transport.Eager, transport.RTS:
		ch.arrived(m)
	case transport.Await:
		ch.Inquire(m.Src)
		ch.Engine.freeMessage(m)
	default:
		if _, kept := ch.collectives.Frame(m); !kept {
			ch.Engine.Drop(m)
		}
	}
}

// Close removes the Channel. Operations under way fail with ErrClosed, and nothing touches their
// memory after Close. So Close waits, without a bound, for the running copies of devices, which
// cannot be cancelled. A device that hangs blocks Close.
func (ch *Channel) Close() {
	e := ch.Engine
	e.Progress.Lock()
	delete(e.channels, ch.ID)
	e.latest, ch.closed = nil, true
	ch.Comm.Close()
	e.Progress.Exit()
	ch.copies.Wait()
}

// Drain waits until none of ch's messages is under way, or ch is broken. No goroutine starts more.
func (ch *Channel) Drain() {
	e := ch.Engine
	e.Progress.Lock()
	defer e.Progress.Exit()
	w := &waiter{e: e}
	w.Init(nil, nil)
	w.Waiter.Init(nil) // the program waits in none of its calls
	w.Background = true
	for r := range ch.underWay {
		w.left++
		w.watch(r)
	}
	if w.left > 0 {
		e.Progress.Await(context.Background(), &w.Waiter) // never fails: this context never ends
	}
}

// Busy reports whether messages of ch are under way.
func (ch *Channel) Busy() bool {
	ch.Engine.Progress.Lock()
	defer ch.Engine.Progress.Unlock()
	for range ch.underWay {
		return true
	}
	return false
}

// underWay yields the Requests that Fail would end.
func (ch *Channel) underWay(yield func(r *Request) bool) {
	for n := range ch.q.Posted() {
		if !yield(n.Val) {
			return
		}
	}
	for r, m := range ch.Engine.tokens.All {
		if m != nil {
			r = m.taken
		}
		if r != nil && r.ch == ch && r.Stage != payload.Posted && r.Stage != payload.Complete && !yield(r) {
			return
		}
	}
}

var _ liveness.Operations = (*Channel)(nil)

// Fail implements liveness.Operations.
func (ch *Channel) Fail(err error) {
	e := ch.Engine
	for n := range ch.q.Posted() {
		ch.q.Cancel(n)
		e.Finish(n.Val, err)
	}
	for n := range ch.q.Arrived() {
		ch.q.Remove(n)
		e.Drop(n.Val)
	}
	ch.rouseProbes()
	ch.probes = nil
	for r, m := range e.tokens.All {
		switch {
		case r != nil && r.ch == ch:
			e.abandon(r, err)
		case m != nil && m.taken != nil && m.taken.ch == ch:
			e.Finish(m.taken, err)
			e.Drop(m)
		}
	}
	ch.collectives.Fail(err)
}

// Depart implements liveness.Operations. A receive from any member continues as long as there is
// another member. A receive from this rank itself always continues: this rank may still send.
func (ch *Channel) Depart(p *peers.Peer, all bool) {
	e := ch.Engine
	for n := range ch.q.Arrived() {
		if m := n.Val; m.Peer == p && m.Kind == transport.RTS { // its payload will not come
			ch.q.Remove(n)
			e.Drop(m)
		}
	}
	ch.q.DropSource(ch.Member(p.Rank), func(n *match.Recv[Request]) { e.Finish(n.Val, liveness.ErrLeft) })
	for r := range e.tokens.All {
		if r != nil && r.ch == ch && r.Peer == p && !r.collective && (r.HalfWay() || r.Stage == payload.Queued) {
			e.abandon(r, liveness.ErrLeft)
		}
	}
	ch.rouseProbes()
	ch.collectives.Dismiss(p)
	for n := range ch.q.Posted() {
		if all && n.Source == Any {
			ch.q.Cancel(n)
			e.Finish(n.Val, liveness.ErrLeft)
		}
	}
}

// Awaited implements liveness.Operations: for receives, probes, including a program's loops of
// probes, messages under way, and collectives.
func (ch *Channel) Awaited(named []int) (to []int, anyMember bool) {
	for n := range ch.q.Posted() {
		if anyMember = anyMember || n.Source == Any; n.Source != Any {
			named = append(named, n.Source)
		}
	}
	for _, w := range ch.probes {
		if anyMember = anyMember || w.Hint < 0; w.Hint >= 0 {
			named = append(named, ch.Member(w.Hint))
		}
	}
	for src := range ch.sought {
		if anyMember = anyMember || src == Any; src != Any {
			named = append(named, src)
		}
	}
	for r := range ch.Engine.tokens.All {
		if r != nil && r.ch == ch && r.HalfWay() {
			named = append(named, ch.Member(r.Peer.Rank))
		}
	}
	return ch.collectives.Awaited(named), anyMember
}

// Unanswered implements liveness.Operations.
func (ch *Channel) Unanswered(yield func(member int) bool) {
	for n := range ch.q.Arrived() {
		if m := n.Val; m.Kind == transport.RTS && !m.local && !yield(m.Src) {
			return
		}
	}
	ch.collectives.Unanswered(yield)
}

// abandon ends a request whose buffer a transport may hold.
func (e *Engine) abandon(r *Request, err error) {
	r.GiveUp(r.Peer != nil && e.Live.Ended(r.Peer.Rank))
	e.Finish(r, err)
}

// Drop discards a message that no receive will take, and returns its credit.
func (e *Engine) Drop(m *Kept) {
	if s, _ := e.tokens.Get(m.Offer); m.local && s != nil {
		e.abandon(s, s.ch.Broken())
	}
	if m.Kind == transport.Eager && m.Peer != nil && !m.Paid { // messages of a round die with their Channel
		e.room.ReturnCredit(m.Peer, m.Size)
	}
	e.dropFetch(m)
	if m.token != 0 && !m.ready {
		m.Peer.Forget(m.token)
	}
	e.freeMessage(m)
}
