package engine

import (
	"errors"
	"slices"

	"gompi/internal/mem"
	"gompi/transport"
)

// An announced message need not travel where its two sides share memory. If the
// sender's buffer lies there, Announce tells the place, the receiver copies from it and
// answers Done. Else, if the receiver's does, Clear tells the place, the sender copies
// to it and says Done. So it takes one copy and no more frames than the other way,
// which is left for buffers that neither side reaches, and for messages of which not
// everything is received. What is short enough to be eager stays so, from such memory
// too: its sender need not wait for the receive, and programs count on that.
//
// A side that gives up a message of which it has told a place recalls all its places.
// Who copies from or to one then learns that it was in vain. If it was because of that
// message, an error is on its way; and if it was because of another one, the message
// goes the other way.

// tell returns the place of r's buffer for p, which it will be told, or may be: whoever
// copies from p may ask it to help. It is 0 if there is none.
func (p *peer) tell(r *Request) (place uint64) {
	if p.direct != nil && r.buf.IsHost() && !r.later {
		place = p.direct.Place(p.rank, r.buf.Raw())
	}
	r.told = place != 0
	return place
}

// clear tells the sender of an announced message to send it, or to store it at a place.
func (e *Engine) clear(p *peer, r *Request, place uint64) {
	r.asked = r.size
	e.h = transport.Header{Kind: transport.Clear, A: r.other, B: e.stamp(r), Seq: place}
	e.post(p, mem.Buffer{}, 0)
}

// copied ends what this rank has copied directly, or has it go the other way. It reports
// false if the peer is lost.
func (e *Engine) copied(r *Request, err error) bool {
	p := e.peer(r.peer)
	switch {
	case err == nil:
		e.h = transport.Header{Kind: transport.Done, A: r.other}
		e.post(p, mem.Buffer{}, 0)
		e.finish(r, nil)
	case !errors.Is(err, transport.ErrRecalled):
		return false
	case r.stage == storing:
		e.supply(p, r)
	default:
		r.stage = filling
		e.clear(p, r, 0)
	}
	return true
}

// done ends a message that the peer has copied.
func (e *Engine) done(p *peer, token uint64) {
	r, _ := e.slots.get(token)
	if r != nil && r.told && r.peer == p.rank && (r.stage == announced || r.stage == filling) {
		e.finish(r, nil)
	}
}

// recall takes back the place of r's buffer, if p may know one. If p writes there, or
// helped to before the message went the other way, it may be in the midst of it: then p is
// asked to answer when it is not. One that is lost for another reason than its end may go on
// writing, and cannot be asked.
func (e *Engine) recall(p *peer, r *Request) {
	if !r.told {
		return
	}
	p.direct.Recall()
	if p.ended || r.stage != filling && r.stage != fetching {
		return
	}
	e.flushes++
	e.danglingWrites = append(e.danglingWrites, danglingWrite{p, r.buf.Raw(), e.flushes})
	if p.lost == nil {
		e.h = transport.Header{Kind: transport.Flush, A: e.flushes}
		e.post(p, mem.Buffer{}, 0)
	}
}

// A danglingWrite is a buffer that was given up while a peer was writing to it, and may still be.
type danglingWrite struct {
	p     *peer
	b     mem.Buffer
	flush uint64 // what its answer has to be
}

// answerFlush answers a Flush. Whatever this rank copies, it does not copy in the midst of
// a frame's arrival, and before the next piece it looks whether the place still holds.
func (e *Engine) answerFlush(p *peer, h *transport.Header) {
	if p.tr != nil && p.lost == nil {
		e.h = transport.Header{Kind: transport.Flushed, A: h.A}
		e.post(p, mem.Buffer{}, 0)
	}
}

// flushed notes that p writes no more to what it was asked about up to a Flush.
func (e *Engine) flushed(p *peer, flush uint64) {
	e.danglingWrites = slices.DeleteFunc(e.danglingWrites, func(s danglingWrite) bool { return s.p == p && s.flush <= flush })
}

// Strays reports whether a peer may be writing to b, as to the buffer of a receive that was
// given up: until it has answered, or left.
func (e *Engine) Strays(b mem.Buffer) bool {
	e.progress.Lock()
	defer e.progress.Unlock()
	return slices.ContainsFunc(e.danglingWrites, func(s danglingWrite) bool { return mem.Overlap(s.b, b) })
}
