package tcp

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// Pending connections, which have not authenticated yet, are bounded in number, in bytes (a hello
// and a proof), and in the time for each step.
const (
	pendingTime  = 10 * int64(time.Second)
	extraPending = 256 // allowed beyond the number of ranks
)

// acceptTime is the pause of accepts after the process has run out of descriptors.
const acceptTime = int64(100 * time.Millisecond)

// acceptAll accepts all waiting connections.
func (t *Transport) acceptAll() int {
	for n := range 64 {
		fd, err := sockets.AcceptTCP(t.listener)
		switch err {
		case nil:
			t.addPending(fd)
		case unix.EAGAIN:
			return n
		case unix.EINTR, unix.ECONNABORTED:
		default: // out of descriptors or memory
			t.log.Warn("cannot accept connections", "rank", t.cfg.Rank, "err", err)
			if len(t.pending) > 0 {
				t.reject(t.pending[0], err)
			}
			_ = t.set.Mod(t.listener, listenerKey, 0)
			t.restUntil = t.clock.now + acceptTime
			t.remind(t.restUntil)
			return n
		}
	}
	return 64
}

func (t *Transport) addPending(fd int) {
	if t.filtered && !t.published(fd) {
		unix.Close(fd)
		return
	}
	s, err := t.adopt(fd, accepted, nil, poll.Read)
	if err != nil {
		t.log.Warn("cannot accept a connection", "rank", t.cfg.Rank, "err", err)
		return
	}
	t.pending = append(t.pending, s)
	t.expect(s, pendingTime)
	if len(t.pending) > t.cfg.Size+extraPending {
		t.reject(t.pending[0], unix.ECONNABORTED)
	}
}

// published reports whether fd was accepted at an address on this rank's card, or on loopback.
func (t *Transport) published(fd int) bool {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	a := toAddrPort(sa).Addr()
	for _, s := range t.own {
		if s.Addr() == a {
			return true
		}
	}
	return a.IsLoopback()
}

// reject closes a pending connection.
func (t *Transport) reject(s *sock, err error) {
	t.log.Debug("closed a connection that did not authenticate", "rank", t.cfg.Rank, "err", err)
	t.removePending(s)
	t.drop(s)
}

// removePending removes s from the pending connections.
func (t *Transport) removePending(s *sock) {
	if i := slices.Index(t.pending, s); i >= 0 {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
}

// advancePending takes the callee's next step of the handshake after an event.
func (t *Transport) advancePending(s *sock) {
	want := helloSize
	if s.phase == challenged {
		want = replySize
	}
	done, err := s.readShake(want)
	if err == nil && !done {
		return
	}
	if err == nil && s.phase == accepted {
		err = t.challenge(s)
	} else if err == nil {
		err = t.checkProof(s)
	}
	if err != nil {
		t.reject(s, err)
	}
}

// challenge answers a hello.
func (t *Transport) challenge(s *sock) error {
	tr := &s.shake.transcript
	if err := tr.readHello(s.shake.in[:helloSize]); err != nil {
		return err
	}
	s.shake.have = 0
	if tr.callee != uint32(t.cfg.Rank) || tr.listenerNonce != t.card.nonce || tr.caller >= uint32(t.cfg.Size) ||
		tr.caller == tr.callee {
		t.refuse(s, wrongListener)
		return nil
	}
	if tr.sealed != t.cfg.FrameMAC {
		t.refuse(s, macDiffers)
		return nil
	}
	if !tr.sealed && !tr.between(s.fd) {
		t.refuse(s, translated)
		return nil
	}
	if tr.network != t.networkOf(tr) {
		t.refuse(s, otherNetwork)
		return nil
	}
	rand.Read(tr.fromCallee[:])
	s.phase = challenged
	t.expect(s, pendingTime)
	return s.write(stepChallenge.reply(0, tr.fromCallee[:]))
}

// between reports whether the callee's socket has the two addresses in the caller's hello. A hello
// that was changed on its way fails at the proof.
func (tr *transcript) between(fd int) bool {
	here, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	there, err := unix.Getpeername(fd)
	return err == nil && toAddrPort(here) == tr.to && toAddrPort(there) == tr.from
}

// checkProof admits the caller if its proof is right.
func (t *Transport) checkProof(s *sock) error {
	body, err := s.reply(stepProof)
	if err != nil {
		return err
	}
	tr := &s.shake.transcript
	if !t.proves(tr, body, stepProof, 0) {
		t.refuse(s, badProof)
		return nil
	}
	t.removePending(s)
	s.shake.due = 0
	t.authenticated(t.peer(world.Rank(tr.caller)), s)
	return nil
}

// refuse sends the caller the reason, with a MAC if the caller has authenticated, and
// closes the connection.
func (t *Transport) refuse(s *sock, why reason) {
	t.logRefusal(s, why)
	var body []byte
	if s.peer != nil {
		body = t.mac(&s.shake.transcript, stepRefusal, why)
	}
	_ = s.write(stepRefusal.reply(why, body)) // the caller may have gone
	t.removePending(s)
	t.drop(s)
}

// logRefusal logs the reason, because the caller cannot trust the refusal. A reason that shows an
// error of the job is a warning, the 1st, 2nd, 4th, 8th ... time.
func (t *Transport) logRefusal(s *sock, why reason) {
	level := slog.LevelDebug
	switch why {
	case badProof, translated, macDiffers, otherNetwork:
		if t.refused[why]++; bits.OnesCount(t.refused[why]) == 1 {
			level = slog.LevelWarn
		}
	}
	from, _ := unix.Getpeername(s.fd) // nil if the caller has gone
	t.log.Log(context.Background(), level, "refused a connection", "rank", t.cfg.Rank, "claims", s.shake.caller, "from",
		toAddrPort(from), "why", why.String())
}

// welcome notifies an authenticated caller that its connection is kept.
func (t *Transport) welcome(s *sock) {
	s.phase = welcomed
	if s.write(stepWelcome.reply(0, t.mac(&s.shake.transcript, stepWelcome, 0))) != nil {
		t.incomingClosed(s.peer)
	}
}

// advanceIncoming takes an authenticated caller's next step after an event.
func (t *Transport) advanceIncoming(p *peer, s *sock) {
	done, err := s.readShake(goSize)
	if err == nil && !done {
		return
	}
	if err == nil && s.phase == welcomed {
		if got, _, err := parseStep(s.shake.in[:goSize]); err == nil && got == stepGo {
			t.connected(p, s)
			return
		}
	}
	t.incomingClosed(p) // ended, or sent something else
}
