package ucx

import (
	"fmt"

	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// lastPolls bounds the polls of UCX for messages of a rank that has ended.
const lastPolls = 64

// Poll implements transport.Transport. UCX polls all peers at once.
func (t *Transport) Poll(world.Rank) int {
	if t.closed {
		return 0
	}
	n := t.receive()
	if t.queued > 0 {
		n += t.flush()
	}
	if t.unsent > 0 {
		n += t.flushPuts()
	}
	if !t.unanswered.Empty() {
		t.reportSilent()
	}
	if t.failing > 0 {
		n += t.loseFailing()
	}
	return n
}

// receive delivers arrived messages, and returns the number of events. UCX's progress counts as
// one: the caller sleeps when there are none.
func (t *Transport) receive() int {
	n := t.ucp.Poll()
	for {
		m, ok := t.ucp.Next()
		if !ok {
			return n
		}
		t.deliver(&m)
		t.ucp.Done(m)
		n++
	}
}

// loseFailing reports the failing peers as lost, after their messages have been delivered.
func (t *Transport) loseFailing() int {
	for range lastPolls {
		if t.receive() == 0 {
			break
		}
	}
	n := t.failing
	for i := 0; i < len(t.used); i++ {
		if p := t.used[i]; p.failure != nil {
			t.ucp.Disconnect(int(p.rank)) // after a goodbye, too: the peer is not there for the answer
			t.lose(p, p.failure)
		}
	}
	return n
}

// deliver handles one message.
func (t *Transport) deliver(m *ucp.Message) {
	if m.Kind == ucp.Hello {
		t.onHello(m.Head)
		return
	}
	switch p := t.peers[m.From]; {
	case m.Err != nil:
		t.failed(p, m.Err)
	case p.lost:
	case m.Kind == ucp.Ack:
		p.acked = true
	case m.Kind == ucp.Put:
		t.onPut(p, m)
	case m.Kind == ucp.Stored:
		t.onStored(p, m)
	case m.Kind == ucp.Done:
		t.onDone(p, m)
	case m.Kind == ucp.First && p.in.Left() == 0 && len(m.Head) >= transport.HeaderSize:
		t.begin(p, m)
	case m.Kind == ucp.More && p.in.Left() > 0:
		t.store(p, payload(m, 0))
	default:
		t.lose(p, fmt.Errorf("%w: a message of kind %d with %d bytes of a frame missing", transport.ErrProtocol, m.Kind,
			p.in.Left()))
	}
}

// payload returns m's payload: a small one follows the header, at an offset in Head.
func payload(m *ucp.Message, at int) []byte {
	if len(m.Data) > 0 {
		return m.Data
	}
	return m.Head[at:]
}

// begin handles the first message of a frame.
func (t *Transport) begin(p *peer, m *ucp.Message) {
	h := &t.head
	if err := h.Decode(m.Head); err != nil {
		t.lose(p, err)
		return
	}
	b := payload(m, transport.HeaderSize)
	switch {
	case h.Kind == transport.Goodbye:
		if !p.bye || !p.out.Empty() { // else the peer ends on our goodbye, and may be gone
			t.ucp.Send(int(p.rank), ucp.Ack, nil)
		}
		t.lose(p, transport.ErrGone)
		return
	case t.closing:
		p.in.Skip(h.Len)
	case t.eager != nil && h.Len == int64(len(b)) && t.eager.Take(p.rank, h, b):
		return
	default:
		p.in.Begin(t.sink, p.rank, h)
	}
	t.store(p, b)
}

// store stores payload of p's present frame.
func (t *Transport) store(p *peer, b []byte) {
	if int64(len(b)) > p.in.Left() {
		t.lose(p, fmt.Errorf("%w: %d bytes of payload, of which %d were announced", transport.ErrProtocol, len(b),
			p.in.Left()))
		return
	}
	p.in.Store(t.sink, b)
}

// failed handles UCX's error that p is unreachable. After this rank's goodbye the error means that
// p has closed.
func (t *Transport) failed(p *peer, err error) {
	t.ucp.Disconnect(int(p.rank))
	switch {
	case p.bye:
		t.lose(p, transport.ErrGone)
	case !p.open:
		t.lose(p, fmt.Errorf("%w: %w", transport.ErrUnreachable, err))
	default:
		t.lose(p, fmt.Errorf("%w: %w", transport.ErrCut, err))
	}
}

// Arm implements transport.Transport.
func (t *Transport) Arm() bool {
	return t.closed || t.failing == 0 && (t.unsent == 0 || t.flushPuts() == 0) && t.ucp.Arm()
}

// Pending implements transport.Progresser.
func (t *Transport) Pending() bool {
	return !t.closed && (t.waiting > 0 || t.unsent > 0 || t.ucp.Outstanding() > 0)
}
