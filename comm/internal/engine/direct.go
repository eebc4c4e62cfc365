package engine

import (
	"errors"
	"slices"

	"gompi/internal/mem"
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
func (p *peer) tell(r *Request) (place uint64) {
	if p.direct != nil && r.buf.IsHost() {
		place = p.direct.Place(p.rank, r.buf.Raw())
	}
	r.told = place != 0
	return place
}

// tellSource is tell for the buffer of a send, which a peer can only read.
func (e *Engine) tellSource(p *peer, r *Request) (place uint64) {
	if p.getter == nil {
		return 0
	}
	if place = p.tell(r); place == 0 {
		place = e.source(p, r.buf)
		r.told = place != 0
	}
	return place
}

// source returns the place from which p may read b, ordinary memory, if that can be the fastest way
// for as many bytes; else 0.
func (e *Engine) source(p *peer, b mem.Buffer) uint64 {
	if p.getter == nil || !b.IsHost() || !e.reads.has(b.Size()) && b.Size() < e.tries {
		return 0
	}
	return p.getter.Source(p.rank, b.Raw())
}

// A Range is that of the lengths from From up to, and without, Below.
type Range struct{ From, Below int }

// Register tells the transports of memory from comm.Alloc, which must not lie in Go's heap.
func (e *Engine) Register(b mem.Buffer) error {
	e.progress.Lock()
	defer e.progress.Unlock()
	var err error
	for _, r := range e.registrars {
		err = errors.Join(err, r.Register(b))
	}
	return err
}

// Registers reports whether Register does something.
func (e *Engine) Registers() bool { return len(e.registrars) > 0 }

// Deregister undoes Register. It reports false if b may still be read or written.
func (e *Engine) Deregister(b mem.Buffer) bool {
	e.progress.Lock()
	defer e.progress.Unlock()
	done := true
	for _, r := range e.registrars {
		done = r.Deregister(b) && done
	}
	return done
}

// clear tells the sender of an announced message to send it, or to store it at a place.
func (e *Engine) clear(p *peer, r *Request, place uint64) {
	r.asked = r.size
	e.h = transport.Header{Kind: transport.CTS, A: r.other, B: e.stamp(r), Seq: place}
	e.post(p, mem.Buffer{}, 0)
}

// copied ends a message that this rank has copied directly. If the place was recalled, the
// message goes by frames instead. It reports false if the peer is lost.
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
		p.ways.lost(r)
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

// recall takes back the place of r's buffer, if p may know one. p may be writing there, or
// helping to: then a Flush asks p to answer when it has stopped. A peer that is lost although
// its process lives may go on writing, and cannot be asked.
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

// A danglingWrite is a buffer that was given up while a peer may have been writing to it, and
// may still be.
type danglingWrite struct {
	p     *peer
	b     mem.Buffer
	flush uint64 // what its answer has to be
}

// answerFlush answers a Flush at once: this rank copies nothing while a frame arrives, and
// checks before each chunk of a copy whether its place was recalled.
func (e *Engine) answerFlush(p *peer, h *transport.Header) {
	if p.tr != nil && p.lost == nil {
		e.h = transport.Header{Kind: transport.Flushed, A: h.A}
		e.post(p, mem.Buffer{}, 0)
	}
}

// flushed notes that p has stopped writing to the buffers given up before a Flush.
func (e *Engine) flushed(p *peer, flush uint64) {
	e.danglingWrites = slices.DeleteFunc(e.danglingWrites, func(s danglingWrite) bool { return s.p == p && s.flush <= flush })
}

// MayBeWritten reports whether a peer may still be writing to b, the buffer of a receive that was
// given up. It may until it has answered a Flush, or left.
func (e *Engine) MayBeWritten(b mem.Buffer) bool {
	e.progress.Lock()
	defer e.progress.Unlock()
	return slices.ContainsFunc(e.danglingWrites, func(s danglingWrite) bool { return mem.Overlap(s.b, b) })
}
