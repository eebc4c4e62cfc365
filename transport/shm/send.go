package shm

import (
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

const (
	// copyLimit is the largest rest of a payload that Send copies if the ring is full.
	copyLimit = 16 << 10
	// heldLimit bounds the bytes of such copies per peer.
	heldLimit = 256 << 10
	// burst bounds the bytes written for one peer in one Poll.
	burst = 256 << 10
)

// A frame is an outgoing frame that is not completely in the ring.
type frame struct {
	h     transport.Header
	begun bool
	body  []byte // the part of the payload that is not written
	block []byte // memory of this rank that holds body, unless lent
	token uint64
	lent  bool // Sent is due
}

// An outbox is the queue of one peer's frames.
type outbox struct {
	fifo.Queue[frame]
	copied int      // bytes in blocks of queued frames
	blocks [][]byte // blocks of frames that have left, for reuse
}

// next removes the first frame.
func (t *Transport) next(p *peer) frame {
	f := p.out.Pop()
	if !f.lent {
		t.waiting--
		p.out.copied -= len(f.block)
		p.out.blocks = append(p.out.blocks, f.block)
	}
	return f
}

// own copies the unwritten part of f's payload.
func (o *outbox) own(f *frame) {
	if last := len(o.blocks) - 1; last >= 0 {
		f.block, o.blocks = o.blocks[last], o.blocks[:last]
	}
	f.block = append(f.block[:0], f.body...)
	f.body = f.block
	o.copied += len(f.block)
}

// Send implements transport.Transport.
func (t *Transport) Send(rank world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	h.Len = int64(b.Size())
	if !t.Reaches(rank) {
		return true
	}
	p := t.peers[t.local(rank)]
	if p.lost || t.closing {
		return true
	}
	body := b.HostSlice()
	if !p.out.Empty() {
		return t.enqueue(p, h, body, false, token)
	}
	t.announce(p)
	n, begun := p.w.begin(h, body)
	for rest := n; begun && n < len(body) && rest > 0 && n < burst; n += rest {
		rest = p.w.continueFrame(body[n:])
	}
	if begun {
		t.wake(p)
		if n == len(body) {
			return true
		}
	}
	return t.enqueue(p, h, body[n:], begun, token)
}

// SendNow implements transport.InlineSender.
func (t *Transport) SendNow(rank world.Rank, h *transport.Header, b mem.Buffer) bool {
	p := t.talker(rank)
	if p == nil || p.w.mem == nil || p.lost || t.closing || !p.out.Empty() {
		return false
	}
	body := b.HostSlice()
	if !p.w.fits(len(body)) {
		return false
	}
	h.Len = int64(len(body))
	t.announce(p)
	n, _ := p.w.begin(h, body)
	t.wake(p)
	for n < len(body) {
		n += p.w.continueFrame(body[n:])
		t.wake(p)
	}
	return true
}

// announce makes sure that p looks at the ring from this rank.
func (t *Transport) announce(p *peer) {
	if p.w.tail == 0 {
		t.lines[p.local].writers[t.Local/64].Or(1 << (t.Local % 64))
	}
}

// wake wakes p if p sleeps. p sets parked before its last look at its rings; this rank writes the
// record before looking at parked. Both accesses are atomic and so ordered: either p sees the
// record, or this rank sees that p sleeps. Of the ranks that see a sleeping p, one rings.
func (t *Transport) wake(p *peer) { t.Wake(p.local) }

// Wake wakes a local rank if that rank sleeps, for code that writes to other memory that the rank
// polls. Wake may be called from any goroutine.
func (t *Transport) Wake(local world.LocalRank) {
	l := &t.lines[local]
	if l.parked.Load() != 0 && l.parked.CompareAndSwap(1, 0) {
		t.Ring(local)
	}
}

// enqueue queues the unwritten part of a frame. It reports whether body may be reused.
func (t *Transport) enqueue(p *peer, h *transport.Header, body []byte, begun bool, token uint64) bool {
	f := p.out.Push(frame{})
	f.h, f.body, f.begun, f.token = *h, body, begun, token
	if len(body) > copyLimit || p.out.copied+len(body) > heldLimit {
		f.lent = true
		return false
	}
	p.out.own(f)
	t.waiting++
	return true
}

// Forget implements transport.Transport.
func (t *Transport) Forget(rank world.Rank, token uint64) {
	p := t.peer(t.local(rank))
	p.in.Forget(token)
	t.forgetMove(p, token)
	frames := p.out.Items()
	for i := range frames {
		if f := &frames[i]; f.lent && f.token == token {
			f.lent = false
			p.out.own(f)
			t.waiting++
		}
	}
}

// flush writes queued frames to p as far as there is room, and returns the number of events.
func (t *Transport) flush(p *peer) int {
	n, written := 0, 0
	for !p.out.Empty() && written < burst {
		f := &p.out.Items()[0]
		k := 0
		if !f.begun {
			t.announce(p)
			if k, f.begun = p.w.begin(&f.h, f.body); !f.begun {
				break
			}
		} else if k = p.w.continueFrame(f.body); k == 0 {
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
