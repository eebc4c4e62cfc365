package shm

import (
	"fmt"
	"math/bits"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// received bounds the bytes read from one peer in one Poll, and records bounds their number.
const (
	received = 256 << 10
	records  = 64
)

const (
	// Of allEvery idle Polls, all but one look only at the peer that the caller waits for.
	allEvery = 16
	// One of lookEvery idle Polls checks whether peers live.
	lookEvery = 1024
)

func trailing(bit uint64) int { return bits.TrailingZeros64(bit) }

// Poll implements transport.Transport.
func (t *Transport) Poll(rank world.Rank) int {
	if t.closed {
		return 0
	}
	look := t.disarm()
	t.idle++
	n := 0
	if t.moving > 0 {
		n = t.move()
	}
	if rank >= 0 {
		if k, enough := t.await(rank); k > 0 || enough && !look {
			return n + k
		}
	}
	t.findWriters()
	for _, p := range t.readers {
		n += t.receive(p, records)
	}
	for _, p := range t.used {
		if !p.out.Empty() {
			n += t.flush(p)
		}
	}
	if n > 0 {
		t.idle = 0
	} else if look || t.idle%lookEvery == 0 {
		n = t.loseEnded()
	}
	return n
}

// await looks at the peer that the caller waits for. enough means that this Poll need not look at
// other peers, if nothing came.
func (t *Transport) await(rank world.Rank) (n int, enough bool) {
	p := t.talker(rank)
	if p == nil || p.lost {
		return 0, false
	}
	if !p.reads || p.r.idle() && p.out.Empty() {
		return 0, t.idle%allEvery != 0
	}
	if n = t.serve(p); n > 0 {
		t.idle = 0
	}
	return n, false
}

// disarm notes that this rank is awake, and reports whether the rank was armed.
func (t *Transport) disarm() bool {
	if !t.armed {
		return false
	}
	t.armed = false
	t.lines[t.Local].parked.Store(0)
	for _, p := range t.used {
		if p.hungry {
			p.hungry = false
			p.w.hungry.Store(0)
		}
	}
	return true
}

// RecvNow implements transport.InlineSender.
func (t *Transport) RecvNow(rank world.Rank, want *transport.Header, b mem.Buffer) transport.Look {
	p := t.talker(rank)
	if p == nil || !p.reads || p.lost || t.closing || t.armed || p.in.Left() > 0 {
		return transport.Nothing
	}
	kind, head, content := p.next()
	if kind == 0 {
		return transport.Nothing
	}
	h := &t.head
	if kind != first || h.Decode(head) != nil || h.Kind != want.Kind || h.Flags != want.Flags ||
		h.Comm != want.Comm || h.Tag != want.Tag && want.Tag >= 0 || h.Len > int64(b.Size()) {
		return transport.Other
	}
	switch {
	case int64(len(content)) == h.Len:
	case h.Len <= transport.ShortFrame || int64(len(content)) > h.Len:
		return transport.Other
	}
	*want = *h
	body := b.HostSlice()[:h.Len]
	n := copy(body, content)
	t.done(p)
	if n == len(body) || t.rest(p, body[n:]) {
		return transport.Whole
	}
	return transport.Begun
}

// restLooks is the number of looks for each further record of a frame, some microseconds: a writer
// that runs is a copy of a record ahead.
const restLooks = 1000

// rest copies the rest of a frame to b, and reports whether all has come. Poll continues otherwise,
// as behind a record that is none of this frame.
func (t *Transport) rest(p *peer, b []byte) bool {
	for looks := restLooks; looks > 0; looks-- {
		kind, _, content := p.next()
		if kind == 0 {
			continue
		}
		if kind != more || len(content) == 0 || len(content) > len(b) {
			break
		}
		b = b[copy(b, content):]
		t.done(p)
		if len(b) == 0 {
			return true
		}
		looks = restLooks
	}
	p.in.Resume(b)
	return false
}

// Continue implements transport.InlineSender.
func (t *Transport) Continue(rank world.Rank, token uint64) { t.talker(rank).in.Name(token) }

// done gives up the record that p.next returned.
func (t *Transport) done(p *peer) {
	if p.done() && p.r.hungry.Load() != 0 {
		t.wake(p)
	}
}

// serve reads from and writes to the peer that the caller waits for. It takes one record, or as
// many as the sink wants: the cache line of the next record may be in that peer's cache, and
// loading the line would delay the caller, whose frame has arrived.
func (t *Transport) serve(p *peer) int {
	n := t.receive(p, 1)
	if !p.out.Empty() {
		n += t.flush(p)
	}
	return n
}

// receive reads up to most records from p, or more if the sink wants them, and returns their
// number.
func (t *Transport) receive(p *peer, most int) int {
	n := 0
	for bytes := 0; bytes < received && p.reads && !p.lost; n++ {
		if n >= most && (n >= records || t.eagerSink == nil || !t.eagerSink.Wants(p.rank)) {
			break
		}
		kind, head, content := p.next()
		if kind == 0 {
			break
		}
		if !t.take(p, kind, head, content) {
			return n + 1
		}
		bytes += len(content)
		t.done(p)
	}
	return n
}

// take handles one record. It returns false if the record lost p.
func (t *Transport) take(p *peer, kind int, head, content []byte) bool {
	switch {
	case kind == invite && p.in.Left() == 0:
		return t.help(p, content)
	case kind == first && p.in.Left() == 0:
		h := &t.head
		if err := h.Decode(head); err != nil {
			t.lose(p, err)
			return false
		}
		if h.Kind == transport.Goodbye {
			t.lose(p, transport.ErrGone)
			return false
		}
		switch {
		case t.closing:
			p.in.Skip(h.Len)
		case t.eagerSink != nil && h.Len == int64(len(content)) && t.eagerSink.Take(p.rank, h, content):
			return true
		default:
			p.in.Begin(t.sink, p.rank, h)
		}
	case kind != more || p.in.Left() == 0:
		t.lose(p, fmt.Errorf("%w: a record of kind %d with %d bytes of a frame missing", transport.ErrProtocol, kind,
			p.in.Left()))
		return false
	}
	if int64(len(content)) > p.in.Left() {
		t.lose(p, fmt.Errorf("%w: %d bytes of payload, of which %d were announced", transport.ErrProtocol, len(content),
			p.in.Left()))
		return false
	}
	p.in.Store(t.sink, content)
	return true
}

// loseEnded reads the rings of peers whose processes have ended, and then loses those peers.
func (t *Transport) loseEnded() int {
	n := 0
	for i := 0; i < len(t.used); i++ { // includes peers that are added meanwhile
		p := t.used[i]
		if p.lost {
			continue
		}
		state := t.State(p.local)
		if state == Alive {
			continue
		}
		for t.findWriters(); t.receive(p, records) > 0; {
			n++
		}
		err := fmt.Errorf("%w: its process has ended", transport.ErrCut)
		if state == Left {
			err = transport.ErrGone
		}
		if !p.lost {
			t.lose(p, err)
			n++
		}
	}
	return n
}

// Arm implements transport.Transport. It stores that the rank sleeps before looking for records:
// see wake.
func (t *Transport) Arm() bool {
	if t.closed {
		return true
	}
	t.armed = true
	t.lines[t.Local].parked.Store(1)
	t.findWriters()
	if t.ready() {
		t.disarm()
		t.idle = -1 // the next Poll looks at all peers
		return false
	}
	return true
}

// ready reports whether Poll has anything to do. It asks the readers of full rings to wake this
// rank when there is room.
func (t *Transport) ready() bool {
	for _, p := range t.readers {
		if p.lost {
			continue // its ring may be freed
		}
		if kind, _ := p.r.next(); kind != 0 {
			return true
		}
	}
	for _, p := range t.used {
		if p.moves.ready() {
			return true
		}
		if p.out.Empty() {
			continue
		}
		p.hungry = true
		p.w.hungry.Store(1)
		if p.w.room() >= lineSize {
			return true
		}
	}
	return false
}

// Pending implements transport.Progresser.
func (t *Transport) Pending() bool { return t.waiting > 0 }

// Deadline implements transport.Progresser: time makes no difference.
func (t *Transport) Deadline() int64 { return 0 }

// Close implements transport.Transport. It reads and drops frames that still come, so that peers
// that close too can write their own.
func (t *Transport) Close(force bool) bool {
	if t.closed {
		return true
	}
	if !t.closing {
		t.closing = true
		t.findWriters()
		for _, p := range t.used {
			if !p.lost && t.Reaches(p.rank) {
				t.enqueue(p, &transport.Header{Kind: transport.Goodbye}, nil, false, 0)
			}
		}
	}
	left := 0
	for _, p := range t.used {
		if p.lost {
			continue
		}
		t.endMoves(p, transport.ErrClosed)
		p.in.Abandon()
		t.serve(p)
		if !p.out.Empty() {
			left++
		}
	}
	t.loseEnded()
	if left > 0 && !force {
		return false
	}
	for _, p := range t.used {
		for !p.out.Empty() {
			if f := t.next(p); f.lent {
				t.sink.Sent(f.token, transport.ErrClosed)
			}
		}
	}
	t.closed = true
	return true
}
