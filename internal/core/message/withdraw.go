package message

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gompi/internal/core/liveness"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/transport"
)

// This file ends operations whose context has ended. A message that no receive has matched is
// withdrawn, at either end, and nothing breaks. A message that has matched still moves, as a
// receive of MPI that has matched cannot be cancelled (MPI-4.1 section 3.8.4). A sender cannot know
// whether its RTS has matched, and the receiver may read the payload in place. So the sender sends
// a Withdraw frame and keeps its buffer: the receiver answers with Withdrawn if the message is
// still unexpected. Frames keep their order, so the RTS has arrived by then. If it has matched, the
// answer is the CTS or Done of the receive.

// patience is the time that a matched message may make no progress after its context has ended.
// slowest is the least rate, in bytes a second, of a copy that shows no progress until its end.
const (
	patience = 5 * time.Second
	slowest  = 64 << 20
)

// giveUp ends r, because of cause: at once, or with its message. If the message makes no progress,
// the Channel breaks, because the other side counts on the message. Then giveUp still waits,
// without a bound, for the running copy of a device: see Close.
func (ch *Channel) giveUp(ctx context.Context, r *Request, cause error) {
	e := ch.Engine
	ch.withdraw(r, cause)
	for moved := -1; r.Stage != payload.Complete && moved != r.Moved(); {
		moved = r.Moved()
		some, cancel := context.WithTimeout(context.Background(), patience+time.Duration(r.Size/slowest)*time.Second)
		e.wait(progress.Alike(ctx, some), r)
		cancel()
	}
	if r.Stage == payload.Complete {
		return
	}
	// This rank's error is the cause; the other members get the cause as the reason.
	r.err = cause
	ch.BreakUp(liveness.Reason{Rank: e.cfg.Rank, Cause: fmt.Sprintf("gave up on a message under way: %v", cause)})
	e.wait(progress.Alike(ctx, context.Background()), r)
}

// withdraw ends r if its message has not matched, or asks the receiver whether it has.
func (ch *Channel) withdraw(r *Request, cause error) {
	switch {
	case r.Stage == payload.Posted:
		ch.q.Cancel(&r.node)
		ch.Engine.Finish(r, cause)
	case r.Stage != payload.Announced || r.Asked():
	case r.Peer == nil: // this rank itself
		if ch.removeOffer(nil, r.Token) {
			ch.Engine.Finish(r, cause)
		}
	default:
		r.withdrawn = cause
		r.Peer.SendHeader(transport.Header{Kind: transport.Withdraw, Comm: ch.ID, A: r.Token})
	}
}

// removeOffer removes the unexpected message that p has announced with a token, and reports
// whether there was such a message.
func (ch *Channel) removeOffer(p *peers.Peer, token uint64) bool {
	for n := range ch.q.Arrived() {
		if m := n.Val; m.announces(p, token) {
			ch.q.Remove(n)
			ch.Engine.freeMessage(m)
			return true
		}
	}
	return false
}

func (m *Kept) announces(p *peers.Peer, token uint64) bool {
	return m.Kind == transport.RTS && m.Peer == p && m.Offer == token
}

// withdrawOffer handles a Withdraw frame.
func (e *Engine) withdrawOffer(p *peers.Peer, h *transport.Header) {
	removed := false
	if ch := e.channel(h.Comm); ch != nil {
		removed = ch.removeOffer(p, h.A)
	} else if i := slices.IndexFunc(e.early[h.Comm], func(m *Kept) bool { return m.announces(p, h.A) }); i >= 0 {
		e.freeMessage(e.early[h.Comm][i])
		e.early[h.Comm] = slices.Delete(e.early[h.Comm], i, i+1)
		removed = true
	}
	if removed {
		p.SendHeader(transport.Header{Kind: transport.Withdrawn, A: h.A})
	}
}

// offerWithdrawn handles a Withdrawn frame.
func (e *Engine) offerWithdrawn(p *peers.Peer, h *transport.Header) {
	if r, _ := e.tokens.Get(h.A); r != nil && r.Peer == p && r.Stage == payload.Announced && r.withdrawn != nil {
		e.Finish(r, r.withdrawn)
	}
}
