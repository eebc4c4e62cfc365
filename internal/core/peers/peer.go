package peers

import (
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A Peer is another rank of the job, with the transport that reaches it.
type Peer struct {
	Rank world.Rank
	// Lost is the reason why the peer cannot be reached any more, nil while it can.
	Lost error
	// Direct and Getter are parts of the peer's transport, nil if the transport lacks them.
	Direct     transport.Direct
	Getter     transport.Getter
	Credit     Credit     // for eager point-to-point messages
	Unexpected Unexpected // messages of the two that are kept without a receive
	Offered    int        // messages that p may Get

	tr      transport.Transport // nil if none reaches p
	inline  transport.InlineSender
	can     *transport.Capabilities // of tr
	h       transport.Header        // of the frame that is being sent
	Carried Carried
}

// use makes w the transport that reaches p.
func (p *Peer) use(w *way) {
	p.tr, p.can = w.Transport, &w.can
	p.inline, p.Direct, p.Getter = w.can.Inline, w.can.Direct, w.can.Getter
}

// Connected reports whether a transport reaches p.
func (p *Peer) Connected() bool { return p.tr != nil }

// Reachable reports whether frames can be sent to p.
func (p *Peer) Reachable() bool { return p.tr != nil && p.Lost == nil }

// Inline reports whether SendNow and RecvNow can move frames.
func (p *Peer) Inline() bool { return p.inline != nil }

// Post sends a frame, whose header is in the heap, like the header from Frame. Post reports whether
// the payload may be reused; if not, the Sink's Sent(token) follows.
func (p *Peer) Post(h *transport.Header, b mem.Buffer, token uint64) bool {
	p.Carried.add(b.Size())
	return p.tr.Send(p.Rank, h, b, token)
}

// Frame returns a copy of h in memory of p, valid until the next frame, so that no header is
// allocated.
func (p *Peer) Frame(h transport.Header) *transport.Header {
	p.h = h
	return &p.h
}

// SendHeader sends a frame without payload.
func (p *Peer) SendHeader(h transport.Header) { p.Post(p.Frame(h), mem.Buffer{}, 0) }

// SendNow sends a frame if it can leave at once, and reports whether the frame has left.
func (p *Peer) SendNow(h *transport.Header, b mem.Buffer) bool {
	if p.inline == nil || !p.inline.SendNow(p.Rank, h, b) {
		return false
	}
	p.Carried.add(b.Size())
	return true
}

// RecvNow is RecvNow of transport.InlineSender. p is Inline.
func (p *Peer) RecvNow(want *transport.Header, b mem.Buffer) transport.Look {
	return p.inline.RecvNow(p.Rank, want, b)
}

// Continue is Continue of transport.InlineSender.
func (p *Peer) Continue(token uint64) { p.inline.Continue(p.Rank, token) }

// Lender returns the transport's transport.Lender, nil if there is none.
func (p *Peer) Lender() transport.Lender { return p.can.Lender }

// Put copies b to a place that p has sent. p is Direct.
func (p *Peer) Put(place uint64, b mem.Buffer, token uint64) {
	p.Carried.add(b.Size())
	p.Direct.Put(p.Rank, place, b, token)
}

// Get copies from a place that p has sent to b. p is a Getter. The peer helps with the copy,
// unless it may Get a message itself (1 MB both ways, np=2 on an Intel Xeon: 98 us, 115 with
// help; 2.5 MB 230 and 290).
func (p *Peer) Get(place uint64, b mem.Buffer, token uint64) {
	p.Carried.add(b.Size())
	p.Getter.Get(p.Rank, place, b, token, p.Offered == 0)
}

// Remote returns the memory of p with a key, nil if p's transport does not access it, or not yet.
func (p *Peer) Remote(key []byte) transport.Remote {
	if p.can.OneSided == nil {
		return nil
	}
	return p.can.OneSided.Remote(p.Rank, key)
}

// Write begins to write to memory of p, and Read to read there.
func (p *Peer) Write(to transport.Remote, at uintptr, src []byte) int {
	return p.count(to.Write(at, src))
}

// Read is described at Write.
func (p *Peer) Read(from transport.Remote, at uintptr, dst []byte, token uint64) int {
	return p.count(from.Read(at, dst, token))
}

func (p *Peer) count(n int) int {
	if n > 0 {
		p.Carried.add(n)
	}
	return n
}

// Poll polls p alone. p is Connected.
func (p *Peer) Poll() int { return p.tr.Poll(p.Rank) }

// Forget makes the transport release the buffer of a token.
func (p *Peer) Forget(token uint64) {
	if p.tr != nil {
		p.tr.Forget(p.Rank, token)
	}
}

// Ended notifies the transport that p's process has ended, as transport.DeathObserver defines.
func (p *Peer) Ended(err error) {
	if p.can.DeathObserver != nil {
		p.can.DeathObserver.Ended(p.Rank, err)
	}
}

// Carried counts the traffic of a transport: frames that this rank has sent, and copies to and
// from its peers' memory that this rank has begun.
//
//c:struct gompi_carried
type Carried struct {
	Messages uint64
	Bytes    uint64 // of payload
}

func (c *Carried) add(bytes int) {
	c.Messages++
	c.Bytes += uint64(bytes)
}
