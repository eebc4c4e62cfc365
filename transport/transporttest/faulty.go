package transporttest

import (
	"bytes"
	"fmt"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// An Event is a frame about to leave or arrive.
type Event struct {
	Peer   world.Rank
	Out    bool             // leaving, else arriving
	N      int              // frames before it in this direction between the two ranks
	Header transport.Header // Len is set
}

// A Fault is the fate of a frame and of its connection. The zero Fault lets the frame pass.
type Fault struct {
	// Delay is the number of Polls for which a leaving frame, and all later ones, are held back. An
	// arriving frame is never delayed.
	Delay int
	// Cut ends the connection before the frame: this end loses the peer with transport.ErrCut.
	Cut bool
	// Truncate ends the connection after half the payload, rounded down, of an arriving frame.
	// Before a leaving frame it is a Cut.
	Truncate bool
	// Stall silently holds this frame and all later ones in both directions, as if the peer's
	// process had been stopped.
	Stall bool
}

// Faulty makes a transport fail as decide says. decide is called for every frame. open creates the
// transport, which must deliver to the given Sink. Faults show at this end; for both ends, wrap
// both. Faulty reads no clock.
//
// The result is a transport.Transport and a Progresser: other optional interfaces are hidden.
func Faulty(sink transport.Sink, decide func(Event) Fault,
	open func(transport.Sink) transport.Transport) transport.Transport {
	f := newFaulty(sink, decide)
	f.Transport = open(f)
	return f
}

// newFaulty returns a faulty that delivers to sink, without its transport.
func newFaulty(sink transport.Sink, decide func(Event) Fault) *faulty {
	return &faulty{sink: sink, decide: decide, peers: make(map[world.Rank]*victim), windows: make(map[uint64]*window)}
}

// faulty stands between a transport and its sink, in both directions.
type faulty struct {
	transport.Transport
	sink   transport.Sink
	decide func(Event) Fault
	peers  map[world.Rank]*victim

	// Windows of arriving frames, by tokens of their own: the sink's tokens do not identify the
	// frame.
	windows map[uint64]*window
	token   uint64

	due []func() // calls of the sink, for the next Poll
}

// A victim is the state of one peer.
type victim struct {
	out, in int // frames seen
	queue   []*held
	cut     bool
	stalled bool
	lost    bool
}

// A held frame waits to leave.
type held struct {
	h     transport.Header
	b     mem.Buffer
	token uint64
	polls int

	forgotten bool // no Sent is due
}

// A window is the memory for an arriving frame.
type window struct {
	peer  world.Rank
	token uint64 // the sink's
	left  int64  // bytes until the frame is truncated; negative: never
	size  int64  // of the present window
}

func (f *faulty) peer(i world.Rank) *victim {
	v := f.peers[i]
	if v == nil {
		v = new(victim)
		f.peers[i] = v
	}
	return v
}

// Send implements transport.Transport. The buffer of a held frame counts as lent, whatever its
// size.
func (f *faulty) Send(peer world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	v := f.peer(peer)
	h.Len = int64(b.Size())
	if v.cut || v.lost {
		return true
	}
	if v.stalled {
		return f.hold(v, h, b, token, -1)
	}
	v.out++
	fault := f.decide(Event{Peer: peer, Out: true, N: v.out - 1, Header: *h})
	switch {
	case fault.Cut || fault.Truncate:
		f.due = append(f.due, func() { f.cut(peer) })
		v.cut = true
		return true
	case fault.Stall:
		v.stalled = true
		return f.hold(v, h, b, token, -1)
	case fault.Delay > 0 || len(v.queue) > 0:
		return f.hold(v, h, b, token, fault.Delay)
	}
	return f.Transport.Send(peer, h, b, token)
}

func (f *faulty) hold(v *victim, h *transport.Header, b mem.Buffer, token uint64, polls int) bool {
	v.queue = append(v.queue, &held{h: *h, b: b, token: token, polls: polls})
	return false
}

// Poll implements transport.Transport.
func (f *faulty) Poll(peer world.Rank) int {
	n := f.callDue()
	for i, v := range f.peers {
		n += f.release(i, v)
	}
	return n + f.Transport.Poll(peer)
}

// callDue makes the calls that are due.
func (f *faulty) callDue() int {
	due := f.due
	f.due = nil
	for _, call := range due {
		call()
	}
	return len(due)
}

// release sends the frames whose delay has passed.
func (f *faulty) release(peer world.Rank, v *victim) int {
	n := 0
	for len(v.queue) > 0 && !v.stalled {
		q := v.queue[0]
		if q.polls > 0 {
			q.polls--
			break
		}
		v.queue = v.queue[1:]
		n++
		switch done := f.Transport.Send(peer, &q.h, q.b, q.token); {
		case done && !q.forgotten:
			f.sink.Sent(q.token, nil)
		case !done && q.forgotten:
			f.Transport.Forget(peer, q.token)
		}
	}
	return n
}

// cut ends the connection to peer at this end.
func (f *faulty) cut(peer world.Rank) {
	v := f.peer(peer)
	v.cut = true
	f.Lost(peer, fmt.Errorf("%w: by the test", transport.ErrCut))
}

// Forget implements transport.Transport.
func (f *faulty) Forget(peer world.Rank, token uint64) {
	for _, q := range f.peer(peer).queue {
		if q.token == token && !q.forgotten {
			q.b = mem.Bytes(bytes.Clone(q.b.HostSlice()))
			q.forgotten = true
		}
	}
	for mine, w := range f.windows {
		if w.peer == peer && w.token == token {
			f.Transport.Forget(peer, mine)
			delete(f.windows, mine)
		}
	}
	f.Transport.Forget(peer, token)
}

// Arm implements transport.Transport. A held frame needs more Polls, so Arm fails.
func (f *faulty) Arm() bool {
	if len(f.due) > 0 {
		return false
	}
	for _, v := range f.peers {
		if len(v.queue) > 0 && !v.stalled {
			return false
		}
	}
	return f.Transport.Arm()
}

// Capabilities implements transport.Transport.
func (f *faulty) Capabilities() transport.Capabilities { return transport.Capabilities{Progresser: f} }

// Pending implements transport.Progresser.
func (f *faulty) Pending() bool {
	for _, v := range f.peers {
		for _, q := range v.queue {
			if q.forgotten && !v.stalled {
				return true
			}
		}
	}
	r := f.Transport.Capabilities().Progresser
	return len(f.due) > 0 || r != nil && r.Pending()
}

// Deadline implements transport.Progresser.
func (f *faulty) Deadline() int64 {
	if r := f.Transport.Capabilities().Progresser; r != nil {
		return r.Deadline()
	}
	return 0
}

// Close implements transport.Transport. Stalled frames are dropped.
func (f *faulty) Close(force bool) bool {
	f.callDue()
	waits := false
	for i, v := range f.peers {
		f.release(i, v)
		if v.stalled || force {
			f.discard(v, transport.ErrClosed)
		}
		waits = waits || len(v.queue) > 0
	}
	return !waits && f.Transport.Close(force)
}

func (f *faulty) discard(v *victim, err error) {
	queue := v.queue
	v.queue = nil
	for _, q := range queue {
		if !q.forgotten {
			f.sink.Sent(q.token, err)
		}
	}
}

// Arrive implements transport.Sink.
func (f *faulty) Arrive(peer world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	v := f.peer(peer)
	if v.cut || v.stalled {
		return mem.Buffer{}, 0
	}
	v.in++
	fault := f.decide(Event{Peer: peer, N: v.in - 1, Header: *h})
	if fault.Stall {
		v.stalled = true
		return mem.Buffer{}, 0
	}
	if fault.Cut || fault.Truncate && h.Len < 2 {
		f.cut(peer)
		return mem.Buffer{}, 0
	}
	b, token := f.sink.Arrive(peer, h)
	w := &window{peer: peer, token: token, left: -1}
	if fault.Truncate {
		w.left = h.Len / 2
	}
	return f.open(w, b)
}

// open passes a window on, shortened to the truncated frame.
func (f *faulty) open(w *window, b mem.Buffer) (mem.Buffer, uint64) {
	if b.Size() == 0 {
		if w.left >= 0 { // the frame is dropped anyway
			f.cut(w.peer)
		}
		return b, 0
	}
	if w.left >= 0 && int64(b.Size()) > w.left {
		b = b.Raw().Slice(0, int(w.left))
	}
	w.size = int64(b.Size())
	f.token++
	f.windows[f.token] = w
	return b, f.token
}

// Filled implements transport.Sink.
func (f *faulty) Filled(token uint64) mem.Buffer {
	w := f.windows[token]
	if v := f.peer(w.peer); v.cut || v.stalled {
		delete(f.windows, token)
		return mem.Buffer{}
	}
	if w.left >= 0 {
		if w.left -= w.size; w.left == 0 {
			delete(f.windows, token)
			f.cut(w.peer)
			return mem.Buffer{}
		}
	}
	b := f.sink.Filled(w.token)
	if w.left > 0 && int64(b.Size()) > w.left {
		b = b.Raw().Slice(0, int(w.left))
	}
	w.size = int64(b.Size())
	if w.size == 0 {
		delete(f.windows, token)
	}
	return b
}

// Sent implements transport.Sink.
func (f *faulty) Sent(token uint64, err error) { f.sink.Sent(token, err) }

// Lost implements transport.Sink.
func (f *faulty) Lost(peer world.Rank, err error) {
	v := f.peer(peer)
	if v.lost || v.stalled {
		return
	}
	v.lost = true
	f.discard(v, err)
	f.sink.Lost(peer, err)
}
