package engine

import (
	"errors"
	"math"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/match"
	"gompi/comm/internal/payload"
	"gompi/comm/internal/peers"
	"gompi/internal/world"
	"gompi/transport"
)

// This file ends operations that wait for ranks that have died, left, or revoked a communicator, as
// package liveness finds out.

var _ liveness.Messages = (*Engine)(nil)

// Lost implements transport.Sink.
func (e *Engine) Lost(rank world.Rank, err error) { e.live.TransportLost(rank, err) }

// Silent implements transport.SilenceSink.
func (e *Engine) Silent(rank world.Rank) { e.live.Inquire(rank) }

// News makes the engine look for news from the launcher.
func (e *Engine) News() { e.live.News() }

// HearsLate reports whether a transport may not notice that a rank leaves.
func (e *Engine) HearsLate() bool { return e.peers.MissesEnds() }

// ProcessEnded implements liveness.Messages.
func (e *Engine) ProcessEnded(rank world.Rank, err error) {
	e.peers.Peer(rank).Ended(err)
}

// Awaits implements liveness.Messages.
func (e *Engine) Awaits(rank world.Rank) bool {
	for _, ch := range e.channels {
		if src := ch.Member(rank); src >= 0 && ch.awaits(src) {
			return true
		}
	}
	return false
}

// Lose implements liveness.Messages.
func (e *Engine) Lose(rank world.Rank, err error, known bool) {
	if e.live.Ended(rank) {
		e.Mover.Flushed(rank, math.MaxUint64)
	}
	p := e.peers.Peer(rank)
	if p.Lost != nil {
		return
	}
	p.Lost = err
	for _, ch := range e.channels {
		ch.dismiss(p, known)
	}
}

// dismissLost is dismiss for every rank that was lost before ch was made.
func (ch *Channel) dismissLost() {
	for rank := range ch.e.live.AllLost {
		ch.dismiss(ch.e.peers.Peer(rank), false)
	}
}

// dismiss ends operations that wait for a lost peer. If the peer left in good order, only
// receives and collectives that need it fail. If it crashed or was cut off, the communicator
// breaks for all members.
func (ch *Channel) dismiss(p *peers.Peer, known bool) {
	src := ch.Member(p.Rank)
	if src < 0 || ch.err != nil || p.Rank == ch.e.cfg.Rank {
		return
	}
	if !errors.Is(p.Lost, liveness.ErrLeft) {
		v := liveness.Reason{Rank: p.Rank, Cause: "is lost: " + p.Lost.Error()}
		if known {
			ch.failBecause(v)
		} else {
			ch.BreakUp(v)
		}
		return
	}
	ch.depart(p)
}

// depart ends operations on ch that wait for a member that has left in good order.
func (ch *Channel) depart(p *peers.Peer) {
	e, src := ch.e, ch.Member(p.Rank)
	for n := range ch.q.Arrived() {
		if m := n.Val; m.Peer == p && m.Kind == transport.RTS { // its payload will not come
			ch.q.Remove(n)
			e.drop(m)
		}
	}
	ch.q.DropSource(src, func(n *match.Recv[Request]) { e.finish(n.Val, liveness.ErrLeft) })
	for i := range e.slots.list {
		r := e.slots.list[i].r
		if r != nil && r.ch == ch && r.Peer == p && !r.collective && (r.HalfWay() || r.Stage == payload.Queued) {
			e.abandon(r, liveness.ErrLeft)
		}
	}
	for _, w := range ch.probes {
		e.rouse(w)
	}
	ch.collectives.Dismiss(p)
	if ch.alone() {
		ch.dismissWildcards()
	}
	ch.askAwaited()
}

// dismissWildcards ends receives from anybody when all other members have left. Those from this
// rank itself go on: it may still send.
func (ch *Channel) dismissWildcards() {
	for n := range ch.q.Posted() {
		if n.Source == Any {
			ch.q.Cancel(n)
			ch.e.finish(n.Val, liveness.ErrLeft)
		}
	}
}

// alone reports whether there were other members and all have left.
func (ch *Channel) alone() bool {
	if !ch.e.live.AnyLost() && !ch.leavers.Any() || ch.size == 1 {
		return false
	}
	for r := range ch.size {
		if r != ch.rank && ch.Gone(r) == nil {
			return false
		}
	}
	return true
}

// drainPolls is how many polls are enough to read all frames of ranks that have left: a full
// ring takes half as many. Later frames come from ranks that go on sending.
const drainPolls = 1024

// dismissLeft looks in the host segment for ranks that have left without telling this one, as
// ranks do that never connected to it. It reads their frames first.
func (e *Engine) dismissLeft() {
	var left []world.Rank
	for _, ch := range e.channels {
		named, anybody := ch.awaited()
		for src := 0; anybody && src < ch.size; src++ {
			named = append(named, src)
		}
		for _, src := range named {
			if w := ch.World(src); w != e.cfg.Rank && e.live.Lost(w) == nil && e.cfg.Left(w) {
				left = append(left, w)
			}
		}
		ch.waits = named[:0]
	}
	if left == nil {
		return
	}
	e.drain()
	for _, w := range left {
		e.live.TransportLost(w, transport.ErrGone)
	}
}

// drain reads the frames that have arrived from all ranks.
func (e *Engine) drain() {
	for polls := 0; e.Poll(world.None) > 0 && polls < drainPolls; polls++ {
	}
}

// Revoke implements liveness.Messages.
func (e *Engine) Revoke(comm uint64, why liveness.Reason) {
	switch ch := e.named(comm); {
	case ch == nil:
		if e.past.Revoke(comm, why) {
			e.dropEarly(comm)
		}
	case ch.ID == comm:
		ch.failBecause(why)
	default: // a member has withdrawn, which does not know the id
		ch.BreakUp(why)
	}
}

// dropEarly drops the frames for a communicator that does not exist here, and is broken.
func (e *Engine) dropEarly(comm uint64) {
	for _, m := range e.early[comm] {
		e.drop(m)
	}
	delete(e.early, comm)
}

// revokedBy handles a peer's Revoke frame, which may come before the launcher's news. This rank may
// end because of it, and the other ranks must not hear of this rank's end first.
func (e *Engine) revokedBy(m *Kept) {
	if ch := e.channels[m.comm]; ch != nil && ch.err == nil {
		e.live.Report(m.comm, m.data)
	}
	e.live.Revoked(m.Peer.Rank, m.comm, m.data)
}

// EndAll implements liveness.Messages.
func (e *Engine) EndAll(why error) {
	for _, ch := range e.channels {
		ch.fail(why)
	}
}
