package ucx

import (
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

const (
	// copyLimit is the largest rest of a payload that is copied if UCX accepts no more.
	copyLimit = 64 << 10
	// heldLimit bounds the copied payload per peer.
	heldLimit = 1 << 20
)

// A frame is queued: not sent, or only in part.
type frame struct {
	h     transport.Header
	begun bool   // the header has been sent
	body  []byte // the unsent payload
	block []byte // this package's memory, which holds body unless that is lent
	token uint64
	lent  bool // body is the caller's, and Sent is due
}

// An outbox is the queue of one peer's frames.
type outbox struct {
	fifo.Queue[frame]
	copied int      // bytes in blocks of queued frames
	blocks [][]byte // of sent frames, for reuse
}

// next removes the first frame from p's queue.
func (t *Transport) next(p *peer) frame {
	f := p.out.Pop()
	t.queued--
	if !f.lent {
		t.waiting--
		p.out.copied -= len(f.block)
		p.out.blocks = append(p.out.blocks, f.block)
	}
	return f
}

// own copies the rest of f's payload, so that the caller may reuse its buffer.
func (t *Transport) own(p *peer, f *frame) {
	o := &p.out
	if last := len(o.blocks) - 1; last >= 0 {
		f.block, o.blocks = o.blocks[last], o.blocks[:last]
	}
	f.block = append(f.block[:0], f.body...)
	f.body, f.lent = f.block, false
	o.copied += len(f.block)
	t.waiting++
}

// Send implements transport.Transport.
func (t *Transport) Send(rank world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	h.Len = int64(b.Size())
	if t.closing || !t.Reaches(rank) {
		return true
	}
	p := t.peer(rank)
	if p.lost {
		return true
	}
	body, begun := b.HostSlice(), false
	if p.open && p.out.Empty() {
		var sent int
		if sent, begun = t.write(p, h, body, false); begun && sent == len(body) {
			return true
		}
		body = body[sent:]
	}
	return t.enqueue(p, h, body, begun, token)
}

// write sends as much of a frame as UCX accepts; begun means that the header has been sent. write
// returns the number of sent bytes of body, and whether the header is sent.
func (t *Transport) write(p *peer, h *transport.Header, body []byte, begun bool) (int, bool) {
	for sent := 0; ; {
		kind := ucp.More
		if !begun {
			kind = ucp.First
			h.Encode(t.ucp.Header())
		}
		chunk := body[sent:min(len(body), sent+ucp.ChunkSize)]
		if !t.ucp.Send(int(p.rank), kind, chunk) {
			return sent, begun
		}
		begun = true
		if sent += len(chunk); sent == len(body) {
			return sent, true
		}
	}
}

// enqueue queues the rest of a frame. enqueue reports whether the caller may use body again.
func (t *Transport) enqueue(p *peer, h *transport.Header, body []byte, begun bool, token uint64) bool {
	f := p.out.Push(frame{})
	f.h, f.body, f.begun, f.token = *h, body, begun, token
	t.queued++
	if len(body) > copyLimit || p.out.copied+len(body) > heldLimit {
		f.lent = true
		return false
	}
	t.own(p, f)
	return true
}

// Forget implements transport.Transport.
func (t *Transport) Forget(rank world.Rank, token uint64) {
	p := t.peers[rank]
	if p == nil {
		return
	}
	p.in.Forget(token)
	t.forgetPut(p, token)
	p.forgetAccess(token)
	frames := p.out.Items()
	for i := range frames {
		if f := &frames[i]; f.lent && f.token == token {
			t.own(p, f)
		}
	}
}

// flush sends as many queued frames as UCX accepts, and returns the number of events.
func (t *Transport) flush() int {
	n := 0
	for i := 0; i < len(t.used); i++ { // Sent may add peers
		for p := t.used[i]; p.open && !p.out.Empty(); n++ {
			f := &p.out.Items()[0]
			sent, begun := t.write(p, &f.h, f.body, f.begun)
			if begun && sent == len(f.body) {
				if f := t.next(p); f.lent {
					t.sink.Sent(f.token, nil)
				}
				continue
			}
			moved := sent > 0 || begun != f.begun
			f.body, f.begun = f.body[sent:], begun
			if !moved {
				break
			}
		}
	}
	return n
}

// discard ends p's queued frames, puts and accesses with an error.
func (t *Transport) discard(p *peer, err error) {
	t.endPuts(p, err)
	t.endAccesses(p, err)
	for !p.out.Empty() {
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, err)
		}
	}
}
