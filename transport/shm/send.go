package shm

import (
	"gompi/internal/mem"
	"gompi/transport"
)

const (
	// copyLimit is the largest rest of a payload that is copied when the ring is
	// full.
	copyLimit = 16 << 10
	// heldLimit bounds what is copied per peer.
	heldLimit = 256 << 10
	// burst bounds the bytes written for one peer in one Poll.
	burst = 256 << 10
)

// A frame is one that is not wholly in the ring.
type frame struct {
	h     transport.Header
	begun bool
	body  []byte // what has yet to be written
	block []byte // memory of ours, for reuse; body may lie in it
	token uint64
	lent  bool // Sent is due
}

// An outbox is the queue of one peer's frames. Popped frames leave their blocks
// for those to come.
type outbox struct {
	frames []frame
	first  int
	copied int
}

func (o *outbox) empty() bool { return o.first == len(o.frames) }

func (o *outbox) push() *frame {
	switch {
	case o.first == len(o.frames):
		o.frames, o.first = o.frames[:0], 0
	case o.first > 0 && len(o.frames) == cap(o.frames):
		for i := o.first; i < len(o.frames); i++ { // the popped ones move behind the others
			o.frames[i-o.first], o.frames[i] = o.frames[i], o.frames[i-o.first]
		}
		o.frames, o.first = o.frames[:len(o.frames)-o.first], 0
	}
	if len(o.frames) < cap(o.frames) {
		o.frames = o.frames[:len(o.frames)+1]
	} else {
		o.frames = append(o.frames, frame{})
	}
	f := &o.frames[len(o.frames)-1]
	*f = frame{block: f.block}
	return f
}

// next takes the first frame out.
func (t *Transport) next(p *peer) frame {
	f := &p.out.frames[p.out.first]
	p.out.first++
	if !f.lent {
		t.waiting--
		p.out.copied -= len(f.block)
	}
	taken := *f
	f.body = nil
	return taken
}

// Send implements transport.Transport.
func (t *Transport) Send(rank int, h *transport.Header, b mem.Buffer, token uint64) bool {
	h.Len = int64(b.Size())
	if !t.Reaches(rank) {
		return true
	}
	p := t.peers[t.local(rank)]
	if p.lost || t.closing {
		return true
	}
	body := b.HostSlice()
	if !p.out.empty() {
		return t.enqueue(p, h, body, false, token)
	}
	t.announce(p)
	n, begun := p.w.begin(h, body)
	for rest := n; begun && n < len(body) && rest > 0 && n < burst; n += rest {
		rest = p.w.goOn(body[n:])
	}
	if begun {
		t.wake(p)
		if n == len(body) {
			return true
		}
	}
	return t.enqueue(p, h, body[n:], begun, token)
}

// SendNow implements transport.Prompt.
func (t *Transport) SendNow(rank int, h *transport.Header, b mem.Buffer) bool {
	p := t.talker(rank)
	if p == nil || p.w.mem == nil || p.lost || t.closing || !p.out.empty() {
		return false
	}
	body := b.HostSlice()
	if p.w.room() < frameHead+len(body) {
		return false
	}
	h.Len = int64(len(body))
	t.announce(p)
	p.w.begin(h, body)
	t.wake(p)
	return true
}

// announce makes sure that p looks at our ring.
func (t *Transport) announce(p *peer) {
	if p.w.tail == 0 {
		t.lines[p.local].writers[t.Local/64].Or(1 << (t.Local % 64))
	}
}

// wake wakes p if it sleeps. It has set parked before it looked at its rings for
// the last time; we have written before we look at parked. Both are atomic, and
// so in one order: either it saw our record, or we see that it sleeps. One of
// those who see that rings.
func (t *Transport) wake(p *peer) { t.Wake(p.local) }

// Wake wakes a local rank if it sleeps: for others who write to memory that it
// looks at. It may be called from any goroutine.
func (t *Transport) Wake(local int) {
	l := &t.lines[local]
	if l.parked.Load() != 0 && l.parked.CompareAndSwap(1, 0) {
		t.Ring(local)
	}
}

// enqueue keeps what has not been written of a frame. It reports whether body
// may be reused.
func (t *Transport) enqueue(p *peer, h *transport.Header, body []byte, begun bool, token uint64) bool {
	f := p.out.push()
	f.h, f.body, f.begun, f.token = *h, body, begun, token
	if len(body) > copyLimit || p.out.copied+len(body) > heldLimit {
		f.lent = true
		return false
	}
	f.own()
	p.out.copied += len(f.block)
	t.waiting++
	return true
}

// own copies what is left of the payload.
func (f *frame) own() {
	f.block = append(f.block[:0], f.body...)
	f.body = f.block
}

// Forget implements transport.Transport.
func (t *Transport) Forget(rank int, token uint64) {
	p := t.peer(t.local(rank))
	p.in.Forget(token)
	t.forgetMove(p, token)
	for i := p.out.first; i < len(p.out.frames); i++ {
		if f := &p.out.frames[i]; f.lent && f.token == token {
			f.lent = false
			f.own()
			p.out.copied += len(f.block)
			t.waiting++
		}
	}
}

// flush writes queued frames to p as far as there is room, and returns the number
// of events.
func (t *Transport) flush(p *peer) int {
	n, written := 0, 0
	for !p.out.empty() && written < burst {
		f := &p.out.frames[p.out.first]
		k := 0
		if !f.begun {
			t.announce(p)
			if k, f.begun = p.w.begin(&f.h, f.body); !f.begun {
				break
			}
		} else if k = p.w.goOn(f.body); k == 0 {
			break
		}
		n++
		written += k
		if f.body = f.body[k:]; len(f.body) > 0 {
			continue
		}
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, nil)
		}
	}
	if n > 0 {
		t.wake(p)
	}
	return n
}
