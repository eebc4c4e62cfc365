package engine

import (
	"errors"

	"gompi/comm/internal/payload"
	"gompi/comm/internal/peers"
	"gompi/transport"
)

// An announced message need not travel in frames where one side can reach the memory of the other.
// If the receiver can read the sender's buffer, an RTS tells its place, the receiver copies from it
// and answers Done. Else, if the sender can write to the receiver's buffer, a CTS tells its place,
// the sender copies to it and says Done. So it takes one copy and no more frames than the other
// way, which is left for buffers that neither side reaches, and for messages of which not
// everything is received. What is short enough to be eager stays so, from such memory
// too: its sender need not wait for the receive, and programs count on that.
//
// A side that gives up a message whose place it has told recalls all its places. A rank that
// copies from or to one of them then learns that the copy is void. If it was because of that
// message, an error is on its way; and if it was because of another one, the message
// goes the other way.

// tell returns the place of r's buffer for p, which p will be told, or may be: a rank
// that copies from p may ask p to help. It is 0 if there is none.
func (r *Request) tell(p *peers.Peer) (place uint64) {
	if p.Direct != nil && r.buf.IsHost() {
		place = p.Direct.Place(p.Rank, r.buf.Raw())
	}
	r.told = place != 0
	return place
}

// tellSource is tell for the buffer of a send, which a peer can only read.
func (e *Engine) tellSource(p *peers.Peer, r *Request) (place uint64) {
	if p.Getter == nil {
		return 0
	}
	if place = r.tell(p); place == 0 {
		place = e.Direct.Source(p.Getter, p.Rank, r.buf)
		r.told = place != 0
	}
	return place
}

// fetches reports whether r is to be copied from a place that p has told.
func (e *Engine) fetches(p *peers.Peer, r *Request, place uint64) (fetch bool) {
	if p.Getter.Maps(place) {
		return true
	}
	fetch, r.choice = e.Direct.Choose(p.Rank, r.size)
	return fetch
}

// clear tells the sender of an announced message to send it, or to store it at a place.
func (e *Engine) clear(p *peers.Peer, r *Request, place uint64) {
	r.asked = r.size
	p.Tell(transport.Header{Kind: transport.CTS, A: r.other, B: e.stamp(r), Seq: place})
}

// copied ends a message that this rank has copied directly. If the place was recalled, the
// message goes by frames instead. It reports false if the peer is lost.
func (e *Engine) copied(r *Request, err error) bool {
	p := e.peers.Peer(r.peer)
	switch {
	case err == nil:
		p.Tell(transport.Header{Kind: transport.Done, A: r.other})
		e.finish(r, nil)
	case !errors.Is(err, transport.ErrRecalled):
		return false
	case r.stage == storing:
		e.supply(p, r)
	default:
		if r.choice == payload.Timed {
			r.choice = payload.Untimed
		}
		r.stage = filling
		e.clear(p, r, 0)
	}
	return true
}

// done ends a message that the peer has copied.
func (e *Engine) done(p *peers.Peer, token uint64) {
	r, _ := e.slots.get(token)
	if r != nil && r.told && r.peer == p.Rank && (r.stage == announced || r.stage == filling) {
		e.finish(r, nil)
	}
}

// recall takes back the place of r's buffer, if p may know one. p may be writing there, or
// helping to: then a Flush asks p to answer when it has stopped. A peer that is lost although
// its process lives may go on writing, and cannot be asked.
func (e *Engine) recall(p *peers.Peer, r *Request) {
	if !r.told {
		return
	}
	p.Direct.Recall()
	if e.live.Ended(p.Rank) || r.stage != filling && r.stage != fetching {
		return
	}
	flush := e.Direct.GiveUp(p.Rank, r.buf.Raw())
	if p.Lost == nil {
		p.Tell(transport.Header{Kind: transport.Flush, A: flush})
	}
}

// answerFlush answers a Flush at once: this rank copies nothing while a frame arrives, and
// checks before each chunk of a copy whether its place was recalled.
func (e *Engine) answerFlush(p *peers.Peer, h *transport.Header) {
	if p.Reachable() {
		p.Tell(transport.Header{Kind: transport.Flushed, A: h.A})
	}
}
