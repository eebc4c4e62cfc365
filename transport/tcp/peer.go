package tcp

import (
	"gompi/internal/poll"
	"gompi/internal/world"
)

// A peer is what this rank knows of another.
//
// Two ranks may call each other at the same time. Which connection stays:
//
//   - A callee that has not called, or whose own call has not come as far as
//     proof, drops its own call and welcomes the caller.
//   - Else the lower rank holds the other's connection back until its own call
//     has succeeded, and drops it, or failed, and welcomes it.
//   - The higher rank welcomes at once, and lets its own call run.
//
// So the lower rank never has a welcome and a proof of its own out at the same
// time, and only a connection that it has chosen can be completed, by whichever
// side. No frame has been sent on the other one.
type peer struct {
	rank  world.Rank
	near  bool // on this host
	conn  *sock
	call  *call // our attempt to connect
	guest *sock // their attempt, proven: held or welcomed
	due   bool  // is in Transport.calls
	lost  bool
	bye   bool  // our goodbye is queued or sent
	cause error // writing failed: reading will end too

	hot       bool // a frame has left since the last Poll
	gathering bool // more wait for the next; see burst.go

	out outbox
	in  inbox
}

// idle reports whether nothing is under way to connect p.
func (p *peer) idle() bool {
	return p.conn == nil && p.call == nil && p.guest == nil && !p.lost
}

// want has p called at the next Poll, unless it is connected or about to be.
func (t *Transport) want(p *peer) {
	if !p.due && p.idle() {
		p.due = true
		t.calls = append(t.calls, p)
	}
}

// proven decides about a caller that has proven to be p.
func (t *Transport) proven(p *peer, s *sock) {
	s.peer = p
	switch {
	case p.lost, p.conn != nil:
		t.refuse(s, notAgain)
		return
	case t.closing && p.out.Empty():
		t.refuse(s, leaving)
		return
	}
	if p.guest != nil { // the caller has given that one up
		t.drop(p.guest)
	}
	p.guest = s
	switch ours := p.call; {
	case ours == nil || t.cfg.Rank > p.rank:
	case ours.sock != nil && ours.sock.phase == proved:
		s.phase = held
		return
	default:
		t.hangUp(p)
	}
	t.welcome(s)
}

// hangUp ends our own call to p, if there is one.
func (t *Transport) hangUp(p *peer) {
	if p.call != nil && p.call.sock != nil {
		t.drop(p.call.sock)
	}
	p.call = nil
}

// guestGone is told when a proven caller's connection has ended early.
func (t *Transport) guestGone(p *peer) {
	t.drop(p.guest)
	p.guest = nil
	if !p.out.Empty() {
		t.want(p)
	}
}

// connected makes s the connection to p.
func (t *Transport) connected(p *peer, s *sock) {
	if p.call != nil && p.call.sock == s {
		p.call = nil
	} else {
		t.hangUp(p)
	}
	if p.guest != nil && p.guest != s {
		t.drop(p.guest)
	}
	p.guest = nil
	p.conn = s
	if t.cfg.FrameMAC {
		s.seal = t.newSealed(&s.shake.transcript)
	}
	s.phase, s.shake = open, nil
	tune(s.fd, p.near)
	if !p.near && t.healthDue == 0 {
		t.healthDue = t.clock.now + healthTime
		t.remind(t.healthDue)
	}
	t.watch(s, poll.Read)
	t.log.Debug("connected", "rank", t.cfg.Rank, "peer", p.rank)
	t.flush(p)
}

// lose ends everything with p, once, and says so.
func (t *Transport) lose(p *peer, err error) {
	if p.lost {
		return
	}
	p.lost = true
	t.hangUp(p)
	if p.guest != nil {
		t.drop(p.guest)
		p.guest = nil
	}
	if p.conn != nil {
		t.drop(p.conn)
		p.conn = nil
	}
	p.in = inbox{}
	t.discard(p, err)
	t.log.Debug("lost", "rank", t.cfg.Rank, "peer", p.rank, "err", err)
	t.sink.Lost(p.rank, err)
}

// discard empties the out queue.
func (t *Transport) discard(p *peer, err error) {
	for !p.out.Empty() {
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, err)
		}
	}
}
