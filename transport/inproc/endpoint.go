package inproc

import (
	"sync/atomic"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// An endpoint is the Transport of one rank.
type endpoint struct {
	net       *World
	rank      world.Rank
	mailbox   *mailbox
	sink      transport.Sink
	eagerSink transport.EagerSink // sink, if it implements EagerSink

	links   map[world.Rank]*link // to ranks with which frames were exchanged
	lent    int                  // payloads that peers have yet to copy
	armed   bool
	closing bool // arriving frames are dropped
	ended   bool // closed or killed
}

// A link is one rank's view of another.
type link struct {
	peer  world.Rank
	held  atomic.Int64 // bytes of copied payload in peer's mailbox
	loans []*packet
	shut  bool // peer's mailbox was shut; its packet of kind gone is under way
	lost  bool // and was delivered
}

// Name implements transport.Transport.
func (e *endpoint) Name() string { return "inproc" }

// Capabilities implements transport.Transport: there are no optional parts.
func (e *endpoint) Capabilities() (none transport.Capabilities) { return none }

// Reaches implements transport.Transport.
func (e *endpoint) Reaches(peer world.Rank) bool {
	return peer >= 0 && int(peer) < len(e.net.mailboxes)
}

// Carries implements transport.Transport.
func (e *endpoint) Carries(s mem.Space) bool { return s == mem.Host }

func (e *endpoint) link(peer world.Rank) *link {
	l := e.links[peer]
	if l == nil {
		l = &link{peer: peer}
		e.links[peer] = l
	}
	return l
}

// Send implements transport.Transport.
func (e *endpoint) Send(peer world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	n := b.Size()
	h.Len = int64(n)
	l := e.link(peer)
	if l.lost || l.shut || e.closing || e.ended {
		return true
	}
	lend := n > copyLimit || n > 0 && l.held.Load()+int64(n) > heldLimit
	p := e.pack(l, h, b, lend)
	p.token = token
	if lend {
		p.index = len(l.loans)
		l.loans = append(l.loans, p)
		e.lent++
	}
	err := e.net.mailboxes[peer].put(p)
	if err == nil {
		return !lend
	}
	if lend {
		e.returned(p)
	}
	// All frames of peer are in our mailbox already. Its packet of kind gone belongs behind them.
	l.shut = true
	e.mailbox.put(&packet{kind: gone, from: peer, err: err})
	return true
}

// Forget implements transport.Transport. An arriving payload is stored in one step, so only a lent
// payload can still be under way.
func (e *endpoint) Forget(peer world.Rank, token uint64) {
	for _, p := range e.link(peer).loans {
		if p.token == token {
			p.keep()
		}
	}
}

// pack returns a packet for b, copied unless lend is set.
func (e *endpoint) pack(l *link, h *transport.Header, b mem.Buffer, lend bool) *packet {
	n := b.Size()
	if lend {
		n = 0
	}
	p := e.net.pools.get(n)
	p.kind, p.from, p.h, p.link, p.lent = frame, e.rank, *h, l, lend
	switch {
	case lend:
		p.payload = b.HostSlice()
	case n > 0:
		p.payload = p.buf[:n]
		copy(p.payload, b.HostSlice())
		l.held.Add(int64(n))
	}
	return p
}

// Poll implements transport.Transport. The peer makes no difference: there is only one queue.
func (e *endpoint) Poll(world.Rank) int {
	if e.armed {
		e.armed = false
		e.mailbox.disarm()
	}
	if e.ended {
		return 0
	}
	if !e.mailbox.news.Load() {
		return 0
	}
	q, end := e.mailbox.take()
	if end != nil {
		return e.rankEnded(end)
	}
	n := 0
	for p := q.pop(); p != nil; p = q.pop() {
		e.handle(p)
		n++
	}
	return n
}

func (e *endpoint) handle(p *packet) {
	switch p.kind {
	case frame:
		e.receive(p)
	case copied:
		if p.withdrawn {
			return // Sent was called at withdrawal
		}
		e.returned(p)
		token, err, forgotten := p.token, p.err, p.forgotten
		e.net.pools.put(p)
		if !forgotten {
			e.sink.Sent(token, err)
		}
	case gone:
		e.lose(e.link(p.from), p.err)
	}
}

// receive delivers a frame and returns or recycles the packet.
func (e *endpoint) receive(p *packet) {
	l := e.link(p.from)
	switch {
	case e.closing:
		p.err = transport.ErrGone
	case l.lost:
		p.err = transport.ErrCut
	case !e.unpack(p):
		e.lose(l, transport.ErrCut)
		return // the sender still knows the packet: not for the pool
	}
	if p.lent {
		p.kind = copied
		e.net.mailboxes[p.from].put(p) // if that rank has ended, no rank waits
		return
	}
	p.link.held.Add(-int64(len(p.payload)))
	e.net.pools.put(p)
}

// unpack hands the frame in p to the sink, window by window. unpack returns false if the sender
// took the payload back.
func (e *endpoint) unpack(p *packet) bool {
	if !p.lent && e.eagerSink != nil && e.eagerSink.Take(p.from, &p.h, p.payload) {
		return true
	}
	window, token := e.sink.Arrive(p.from, &p.h)
	for off := int64(0); off < p.h.Len; {
		n := min(int64(window.Size()), p.h.Len-off)
		if n == 0 {
			return true // dropped
		}
		if !p.take(window.HostSlice()[:n], off) {
			return false
		}
		off += n
		window = e.sink.Filled(token)
	}
	return true
}

// returned removes p from the list of lent payloads.
func (e *endpoint) returned(p *packet) {
	loans := p.link.loans
	last := loans[len(loans)-1]
	loans[p.index] = last
	last.index = p.index
	loans[len(loans)-1] = nil
	p.link.loans = loans[:len(loans)-1]
	e.lent--
}

// recall takes back everything lent to l's peer.
func (e *endpoint) recall(l *link, err error) {
	for len(l.loans) > 0 {
		p := l.loans[len(l.loans)-1]
		p.withdraw()
		e.returned(p)
		if !p.forgotten {
			e.sink.Sent(p.token, err)
		}
	}
}

// lose ends the link to a peer, once.
func (e *endpoint) lose(l *link, err error) {
	if l.lost {
		return
	}
	l.lost = true
	e.recall(l, err)
	e.sink.Lost(l.peer, err)
}

// rankEnded loses all peers, since this rank itself has ended.
func (e *endpoint) rankEnded(err error) int {
	e.ended = true
	for i := range e.net.mailboxes {
		if peer := world.Rank(i); peer != e.rank {
			e.lose(e.link(peer), err)
		}
	}
	return len(e.net.mailboxes) - 1
}

// Arm implements transport.Transport.
func (e *endpoint) Arm() bool {
	if e.ended {
		return true
	}
	e.armed = e.mailbox.arm()
	return e.armed
}

// Close implements transport.Transport. Without force Close waits until all lent payloads have been
// copied.
func (e *endpoint) Close(force bool) bool {
	e.closing = true
	e.Poll(world.None)
	if e.ended {
		return true
	}
	if e.lent > 0 && !force {
		return false
	}
	e.ended = true
	e.mailbox.shut(transport.ErrGone)
	q, _ := e.mailbox.take()
	for p := q.pop(); p != nil; p = q.pop() {
		e.handle(p)
	}
	for _, l := range e.links {
		e.recall(l, transport.ErrClosed)
		if l.peer != e.rank {
			e.net.mailboxes[l.peer].put(&packet{kind: gone, from: e.rank, err: transport.ErrGone})
		}
	}
	return true
}
