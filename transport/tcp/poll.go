package tcp

import (
	"errors"
	"time"

	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// lookEvery is the number of Polls of a connected peer for each look at the poll set, which costs
// about as much as a read of that peer's socket.
const lookEvery = 8

// listenEvery is the number of Polls for each look at the poll set without connections, as in a job
// on one host. A look is a system call (HPCC's RandomAccess, 2 ranks that test for messages of any:
// 2.3 million updates a second with a look in each Poll, 5 with this).
const listenEvery = 32

// healthTime is the interval of checks for hosts that have not acknowledged data.
const healthTime = 5 * int64(time.Second)

// Poll implements transport.Transport.
func (t *Transport) Poll(rank world.Rank) int {
	if t.closed {
		return 0
	}
	n := 0
	if len(t.sentLately) > 0 {
		n += t.flushBursts()
	}
	if t.callable() {
		t.clock.tick()
		n += t.startCalls()
	}
	if rank >= 0 {
		if p := t.peers[rank]; p != nil && p.conn != nil {
			n += t.serve(p)
			if t.skipped++; t.skipped < lookEvery {
				return n
			}
		}
	}
	if len(t.socks) == 0 && len(t.calls) == 0 {
		if t.skipped++; t.skipped < listenEvery {
			return n
		}
	}
	return n + t.look()
}

func (t *Transport) callable() bool { return len(t.calls) > 0 && t.cards != nil }

// serve reads from and writes to a connected peer.
func (t *Transport) serve(p *peer) int {
	n := t.receive(p)
	if p.conn != nil && !p.out.Empty() {
		n += t.flush(p)
	}
	return n
}

// look asks the poll set once and handles all events.
func (t *Transport) look() int {
	t.skipped = 0
	t.clock.tick()
	n := 0
	for range len(t.socks)/len(t.events) + 1 {
		k := t.set.Ready(t.events[:])
		for i := range k {
			n += t.handle(t.events[i])
		}
		if k < len(t.events) {
			break
		}
	}
	// All data that came in time has been read.
	if t.nextDue != 0 && t.clock.now >= t.nextDue {
		n += t.expire()
	}
	return n
}

func (t *Transport) handle(ev poll.Event) int {
	if ev.Key&KeyBit == 0 {
		if t.cfg.Foreign != nil {
			t.cfg.Foreign(ev.Key)
		}
		return 1
	}
	if ev.Key == listenerKey {
		return t.acceptAll()
	}
	s := t.socks[uint32(ev.Key)]
	if s == nil || s.key != ev.Key {
		return 0 // closed after Ready
	}
	switch s.phase {
	case open:
		n := 0
		if ev.Ready&poll.Read != 0 {
			n += t.receive(s.peer)
		}
		if ev.Ready&poll.Write != 0 && s.phase == open {
			n += t.flush(s.peer)
		}
		return n
	case calling, helloSent, proofSent:
		t.advanceCall(s.peer, s)
	case held, welcomed:
		t.advanceIncoming(s.peer, s)
	default:
		t.advancePending(s)
	}
	return 1
}

// expect sets the deadline of the handshake step that s waits for.
func (t *Transport) expect(s *sock, time int64) {
	s.shake.due = t.clock.now + time
	t.remind(s.shake.due)
}

// remind makes Poll call expire at due.
func (t *Transport) remind(due int64) {
	if t.nextDue == 0 || due < t.nextDue {
		t.nextDue = due
	}
}

// late reports whether due has passed. If not, it calls remind.
func (t *Transport) late(due int64) bool {
	if due == 0 {
		return false
	}
	if t.clock.now >= due {
		return true
	}
	t.remind(due)
	return false
}

// expire handles all expired deadlines and returns the number of events.
func (t *Transport) expire() int {
	t.nextDue = 0
	n := 0
	for i := 0; i < len(t.pending); {
		if s := t.pending[i]; t.late(s.shake.due) {
			t.reject(s, errors.New("it sends nothing"))
			n++
		} else {
			i++
		}
	}
	for _, p := range t.peers {
		if p == nil || p.call == nil {
			continue
		}
		switch s := p.call.sock; {
		case s != nil && t.late(s.shake.due):
			t.callLate(p, s)
			n++
		case s == nil && t.late(p.call.due):
			t.tryNext(p)
			n++
		}
	}
	if t.late(t.restUntil) {
		t.restUntil = 0
		_ = t.set.Mod(t.listener, listenerKey, poll.Read)
	}
	if t.late(t.healthDue) {
		n += t.checkHealth()
	}
	return n
}

// checkHealth reports peers as lost whose hosts no longer answer.
func (t *Transport) checkHealth() int {
	t.healthDue = t.clock.now + healthTime
	t.remind(t.healthDue)
	n := 0
	for _, p := range t.peers {
		if p != nil && p.conn != nil && !p.near && sockets.Silent(p.conn.fd) {
			t.cut(p, errors.New("its host does not answer any more"))
			n++
		}
	}
	return n
}

// Arm implements transport.Transport. The poll set itself needs no arming.
func (t *Transport) Arm() bool {
	if t.callable() || t.gathering > 0 {
		return false
	}
	t.clock.parked, t.skipped = true, listenEvery
	return true
}

// Pending implements transport.Progresser.
func (t *Transport) Pending() bool { return t.waiting > 0 }

// lingerTime is the sleep of a closing transport before it asks the kernel again whether all data
// has arrived: no event reports that.
const lingerTime = int64(time.Millisecond)

// Deadline implements transport.Progresser.
func (t *Transport) Deadline() int64 {
	switch {
	case t.closed:
		return 0
	case t.lingering:
		return lingerTime
	case t.nextDue == 0:
		return 0
	}
	return max(t.nextDue-t.clock.now, 1)
}
