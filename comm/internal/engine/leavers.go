package engine

import (
	"gompi/internal/mem"
	"gompi/transport"
)

// This file informs a rank that another has closed a communicator, and remains in others. A
// rank that waits for long sends Await, once, to the members that it waits for. Close sends
// Left to members that have sent Await, or whose frames show that they wait. So a communicator
// in which no rank waits is closed without a message. Left comes in order behind all frames
// that its sender has sent on the communicator. A rank whose communicator was revoked says that
// instead, with the reason: the members that wait for it may not have heard of it.

// leavers are the members of a Channel that close it, by rank in the Channel.
type leavers struct {
	left    map[int]bool // have closed it
	asked   map[int]bool // were sent Await by this rank
	inquire map[int]bool // wait for Left from this rank
}

func (l *leavers) include(rank int) bool { return len(l.left) > 0 && l.left[rank] }

// note adds rank to a set, and makes the set if need be.
func note(set *map[int]bool, rank int) {
	if *set == nil {
		*set = map[int]bool{}
	}
	(*set)[rank] = true
}

// gone returns why a member will not send or receive any more, nil if it may.
func (ch *Channel) gone(rank int) error {
	if ch.leavers.include(rank) {
		return ErrLeft
	}
	return ch.e.gone(ch.World(rank))
}

// askAwaited asks all members that this rank waits for to tell when they close ch. Of those that a
// receive from anybody waits for, it asks only the first: that receive fails when all have left,
// and when the first has, the next are asked, as many as have left and one more: to learn that one
// has left unseen takes newsTime.
func (ch *Channel) askAwaited() {
	left, asked := 0, 0
	for src, named := range ch.awaited() {
		switch {
		case src == ch.rank:
			continue
		case ch.gone(src) != nil:
			if !named {
				left++
			}
			continue
		}
		p := ch.e.peer(ch.World(src))
		if !ch.leavers.asked[src] && ch.usable(p) == nil {
			note(&ch.leavers.asked, src)
			ch.e.postBare(p, transport.Await, ch.ID)
		}
		if named {
			continue
		}
		if asked++; asked > left {
			break
		}
	}
}

// awaitedBy notes that m's sender waits for Left when this rank closes ch.
func (ch *Channel) awaitedBy(m *message) {
	note(&ch.leavers.inquire, m.src)
	ch.e.freeMessage(m)
}

// noteInquirers notes the members whose messages or calls have come and are not answered.
func (ch *Channel) noteInquirers() {
	for n := range ch.q.Arrived() {
		if m := n.Val; m.kind == transport.RTS && !m.local {
			note(&ch.leavers.inquire, m.src)
		}
	}
	for _, l := range ch.round.early {
		note(&ch.leavers.inquire, l.src)
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
		for rank := range ch.leavers.inquire {
			e.postEnd(e.peer(ch.World(rank)), ch.ID, nil)
		}
	}
}

// answerEnd answers a frame for a Channel that is closed here, or broken, if its sender waits for
// an answer.
func (e *Engine) answerEnd(p *peer, h *transport.Header) {
	switch h.Kind {
	case transport.RTS, transport.Coll, transport.Ready, transport.Call, transport.Await:
		ch, why := e.channels[h.Comm], e.closed.of[h.Comm]
		if ch != nil {
			why = ch.reason
		} else if v, ok := e.revoked.of[h.Comm]; ok {
			why = v.encode()
		}
		if ch == nil || why != nil {
			e.postEnd(p, h.Comm, why)
		}
	}
}

// postEnd tells p that a communicator is closed here, or, with a reason, that it was revoked.
func (e *Engine) postEnd(p *peer, comm uint64, why []byte) {
	switch {
	case p.tr == nil || p.lost != nil:
	case why == nil:
		e.postBare(p, transport.Left, comm)
	default:
		e.h = transport.Header{Kind: transport.Revoke, Comm: comm}
		e.post(p, mem.Bytes(why), 0)
	}
}

// leftChannel handles a Left frame: p has closed a communicator.
func (e *Engine) leftChannel(p *peer, comm uint64) {
	ch := e.channel(comm)
	if ch == nil || ch.err != nil {
		return
	}
	if src := ch.member(p.rank); src >= 0 && src != ch.rank {
		note(&ch.leavers.left, src)
		ch.depart(p)
	}
}

// postBare sends a frame of the given kind for a communicator, without other fields.
func (e *Engine) postBare(p *peer, k transport.Kind, comm uint64) {
	e.h = transport.Header{Kind: k, Comm: comm}
	e.post(p, mem.Buffer{}, 0)
}
