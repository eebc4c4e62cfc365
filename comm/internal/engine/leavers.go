package engine

import (
	"slices"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file informs a rank that another has closed a communicator, and remains in others: see
// liveness.Leavers. Left comes in order behind all frames that its sender has sent on the
// communicator. A rank whose communicator was revoked says that instead, with the reason: the
// members that wait for it may not have heard of it.

// Gone returns why a member will not send or receive any more, nil if it may.
func (ch *Channel) Gone(rank int) error {
	if ch.leavers.Include(rank) {
		return liveness.ErrLeft
	}
	return ch.e.live.Lost(ch.World(rank))
}

// askAwaited asks members that this rank waits for to tell when they close ch.
func (ch *Channel) askAwaited() {
	named, anybody := ch.awaited()
	for _, src := range named {
		if src != ch.rank && ch.Gone(src) == nil {
			ch.askToTell(src)
		}
	}
	ch.waits = named[:0]
	if !anybody {
		return
	}
	// A receive from anybody fails when all have left. So it is enough to ask the first and, when
	// that has left, as many as have left and one more: to learn that one has left unseen takes
	// liveness.NewsTime.
	left, asked := 0, 0
	for src := 0; src < ch.size && asked <= left; src++ {
		switch {
		case src == ch.rank:
		case ch.Gone(src) != nil:
			left++
		default:
			ch.askToTell(src)
			asked++
		}
	}
}

// askToTell asks a member to tell when it closes ch, once.
func (ch *Channel) askToTell(member int) {
	if p := ch.Peer(member); !ch.leavers.WasAsked(member) && ch.Usable(p) == nil {
		ch.leavers.Ask(member)
		p.Tell(transport.Header{Kind: transport.Await, Comm: ch.ID})
	}
}

// noteInquirers notes the members whose messages or calls have come and are not answered.
func (ch *Channel) noteInquirers() {
	for n := range ch.q.Arrived() {
		if m := n.Val; m.Kind == transport.RTS && !m.local {
			ch.leavers.Inquire(m.Src)
		}
	}
	for member := range ch.collectives.Unanswered {
		ch.leavers.Inquire(member)
	}
}

// tellLeft sends Left to the members that wait for it. With its last Channel a rank leaves the job:
// then its transports tell all peers. If ch was revoked, all members hear why with which this rank
// has exchanged frames: one that has not heard of it may begin to wait when this rank has left.
func (ch *Channel) tellLeft() {
	e := ch.e
	switch {
	case ch.reason != nil:
		e.tell(ch.ID, ch.reason, ch.Has)
	case len(e.channels) > 0:
		for rank := range ch.leavers.Inquirers() {
			e.postEnd(e.peers.Peer(ch.World(rank)), ch.ID, nil)
		}
	}
}

// answerEnd answers a frame for a Channel that is closed here, or broken, if its sender waits for
// an answer.
func (e *Engine) answerEnd(p *peers.Peer, h *transport.Header) {
	switch h.Kind {
	case transport.RTS, transport.Coll, transport.Ready, transport.Call, transport.Await:
		ch, why := e.channels[h.Comm], e.past.Why(h.Comm)
		if ch != nil {
			why = ch.reason
		}
		if ch == nil || why != nil {
			e.postEnd(p, h.Comm, why)
		}
	}
}

// postEnd tells p that a communicator is closed here, or, with a reason, that it was revoked.
func (e *Engine) postEnd(p *peers.Peer, comm uint64, why []byte) {
	switch {
	case !p.Reachable():
	case why == nil:
		p.Tell(transport.Header{Kind: transport.Left, Comm: comm})
	default:
		p.Post(transport.Header{Kind: transport.Revoke, Comm: comm}, mem.Bytes(why), 0)
	}
}

// leftChannel handles a Left frame: p has closed a communicator.
func (e *Engine) leftChannel(p *peers.Peer, comm uint64) {
	ch := e.channel(comm)
	if ch == nil || ch.err != nil {
		return
	}
	if src := ch.Member(p.Rank); src >= 0 && src != ch.rank {
		ch.leavers.Leave(src)
		ch.depart(p)
	}
}

// awaited returns the members for which a receive, a probe or a collective waits, and those for
// which a program probes in a loop; and whether one of these waits for any member. The caller puts
// the list back into ch.waits.
func (ch *Channel) awaited() (named []int, anybody bool) {
	named, ch.waits = ch.waits, nil // a frame that is sent meanwhile may lead here again
	for n := range ch.q.Posted() {
		if anybody = anybody || n.Source == Any; n.Source != Any {
			named = append(named, n.Source)
		}
	}
	for _, w := range ch.probes {
		if anybody = anybody || w.Hint < 0; w.Hint >= 0 {
			named = append(named, ch.Member(w.Hint))
		}
	}
	for src := range ch.sought {
		if anybody = anybody || src == Any; src != Any {
			named = append(named, src)
		}
	}
	for i := range ch.e.slots.list {
		if r := ch.e.slots.list[i].r; r != nil && r.ch == ch && r.HalfWay() {
			named = append(named, ch.Member(r.Peer.Rank))
		}
	}
	return ch.collectives.Awaited(named), anybody
}

// awaits reports whether something waits for a member.
func (ch *Channel) awaits(member int) bool {
	named, anybody := ch.awaited()
	ch.waits = named[:0]
	return anybody || slices.Contains(named, member)
}
