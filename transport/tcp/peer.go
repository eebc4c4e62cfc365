package tcp

import (
	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// A peer is the state of the connection to another rank. Two ranks may connect to each other at the
// same time: these rules decide which connection stays. A call is a rank's own attempt to connect:
//
//   - A callee that has no call, or has not sent the proof in its own call, drops
//     its own call and welcomes the caller.
//   - Else the lower rank holds the other's connection. When its own call succeeds, it drops the
//     held connection; when its own call fails, it welcomes the held connection.
//   - The higher rank welcomes at once, and lets its own call run.
//
// So the lower rank never has both a welcome and a proof undecided, and only its chosen connection
// can be completed. No frame has been sent on the other one.
type peer struct {
	rank     world.Rank
	near     bool // on this host
	conn     *sock
	call     *call // this rank's attempt to connect
	incoming *sock // the peer's attempt, authenticated: held or welcomed
	due      bool  // is in Transport.calls
	lost     bool
	bye      bool  // this rank's goodbye is queued or sent
	cause    error // of a failed write: reading will end, too

	sentLately bool // a frame has left since the last Poll
	gathering  bool // small frames wait for the next Poll; see burst.go

	out outbox
	in  inbox
}

// idle reports whether p is neither connected nor being connected.
func (p *peer) idle() bool {
	return p.conn == nil && p.call == nil && p.incoming == nil && !p.lost
}

// want makes the next Poll connect to p, unless p is connected or being connected.
func (t *Transport) want(p *peer) {
	if !p.due && p.idle() {
		p.due = true
		t.calls = append(t.calls, p)
	}
}

// authenticated decides which connection to p is kept. s, which p opened, has just authenticated.
func (t *Transport) authenticated(p *peer, s *sock) {
	s.peer = p
	switch {
	case p.lost, p.conn != nil:
		t.refuse(s, alreadyConnected)
		return
	case t.closing && p.out.Empty():
		t.refuse(s, leaving)
		return
	}
	if p.incoming != nil { // the caller has given up its earlier connection
		t.drop(p.incoming)
	}
	p.incoming = s
	switch ours := p.call; {
	case ours == nil || t.cfg.Rank > p.rank:
	case ours.sock != nil && ours.sock.phase == proofSent:
		s.phase = held
		return
	default:
		t.abandonCall(p)
	}
	t.welcome(s)
}

// abandonCall ends this rank's call to p, if any.
func (t *Transport) abandonCall(p *peer) {
	if p.call != nil && p.call.sock != nil {
		t.drop(p.call.sock)
	}
	p.call = nil
}

// incomingClosed drops p's incoming connection, which has ended before being open.
func (t *Transport) incomingClosed(p *peer) {
	t.drop(p.incoming)
	p.incoming = nil
	if !p.out.Empty() {
		t.want(p)
	}
}

// connected makes s the connection to p.
func (t *Transport) connected(p *peer, s *sock) {
	if p.call != nil && p.call.sock == s {
		p.call = nil
	} else {
		t.abandonCall(p)
	}
	if p.incoming != nil && p.incoming != s {
		t.drop(p.incoming)
	}
	p.incoming = nil
	p.conn = s
	if t.cfg.FrameMAC {
		s.seal = t.newSealed(&s.shake.transcript)
	}
	s.phase, s.shake = open, nil
	sockets.Tune(s.fd, p.near)
	if !p.near && t.healthDue == 0 {
		t.healthDue = t.clock.now + healthTime
		t.remind(t.healthDue)
	}
	t.watch(s, poll.Read)
	t.log.Debug("connected", "rank", t.cfg.Rank, "peer", p.rank)
	t.flush(p)
}

// lose closes all connections to p and reports the loss to the sink, once.
func (t *Transport) lose(p *peer, err error) {
	if p.lost {
		return
	}
	p.lost = true
	t.abandonCall(p)
	if p.incoming != nil {
		t.drop(p.incoming)
		p.incoming = nil
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

// discard drops the frames in p's queue.
func (t *Transport) discard(p *peer, err error) {
	for !p.out.Empty() {
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, err)
		}
	}
}
