package ucx

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"gompi/internal/seal"
	"gompi/internal/world"
	"gompi/transport"
)

// Two ranks prove their identity to each other by hellos, messages of one kind:
//
//	greeting, version   8 bytes
//	from, to            ranks, 4 bytes each
//	nonce               of from, one for this peer
//	echo                the last nonce that from received of to; zeros if none
//	admits              8 bytes, 1: from has to's proof, and accepts its frames
//	proof               MAC over all of that, the job and both cards; zeros if there is no echo
//
// A hello with this rank's nonce as echo and a right proof comes from the named rank: the sender
// knows the secret, and no older hello has this nonce. A rank answers each hello whose nonce
// differs from the last one's. "admits" says that the rank accepts the peer's frames. Frames are
// sent only to a peer that has said so; so none arrives too early.
//
// Hellos may cross, and any process may send one. An answer goes to the card of the rank in the
// hello, not to its sender. The rank there answers this nonce with a proof, which is accepted
// whatever forged hellos have arrived meanwhile. From then on other nonces are ignored.
const (
	greeting  = "gompi u1"
	nonceSize = 32

	atFrom, atTo = 8, 12
	atNonce      = 16
	atEcho       = atNonce + nonceSize
	atAdmits     = atEcho + nonceSize
	atProof      = atAdmits + 8
	helloSize    = atProof + sha256.Size
)

type nonce [nonceSize]byte

// A hello is one message, encoded.
type hello [helloSize]byte

// A handshake is the state of a peer until it is open.
type handshake struct {
	ours       nonce
	theirs     nonce // the peer's nonce that was last answered
	connected  bool  // UCX can send to the peer
	admitted   bool  // the peer's proof was right, with theirs
	admitSent  bool  // the peer knows of its admission
	unanswered *hello
}

// connect creates p's endpoint and sends the first hello, once p's card is known.
func (t *Transport) connect(p *peer) {
	s := p.handshake
	if t.cards == nil || s == nil || s.connected {
		return
	}
	s.connected = true
	if err := t.ucp.Connect(int(p.rank), t.cards[p.rank]); err != nil {
		t.failLater(p, fmt.Errorf("%w: %w", transport.ErrUnreachable, err))
		return
	}
	t.sendHello(p)
	t.unanswered.Push(call{p, time.Now().Add(silenceTime)})
	if s.unanswered != nil {
		t.onHelloFrom(p, s.unanswered)
		s.unanswered = nil
	}
}

// silenceTime is the time for a peer's answer before the sink is notified. The peer may have left.
const silenceTime = 500 * time.Millisecond

// A call is a peer that was sent the first hello, with the time when its answer is due.
type call struct {
	p   *peer
	due time.Time
}

// reportSilent reports to the sink the peers that have not answered.
func (t *Transport) reportSilent() {
	for now := time.Now(); !t.unanswered.Empty(); {
		c := t.unanswered.Front()
		silent := !c.p.open && !c.p.lost
		if silent && now.Before(c.due) {
			return
		}
		t.unanswered.Pop()
		if silent && t.silence != nil {
			t.silence.Silent(c.p.rank)
		}
	}
}

// sendHello sends a hello to p. sendHello returns false if too many hellos are under way.
func (t *Transport) sendHello(p *peer) bool {
	s := p.handshake
	var h hello
	copy(h[:], greeting)
	binary.LittleEndian.PutUint32(h[atFrom:], uint32(t.cfg.Rank))
	binary.LittleEndian.PutUint32(h[atTo:], uint32(p.rank))
	copy(h[atNonce:], s.ours[:])
	if s.theirs != (nonce{}) {
		if s.admitted {
			s.admitSent, h[atAdmits] = true, 1
		}
		copy(h[atEcho:], s.theirs[:])
		copy(h[atProof:], t.proof(&h))
	}
	return t.ucp.SendHello(int(p.rank), h[:])
}

// proof returns the proof of a hello.
func (t *Transport) proof(h *hello) []byte {
	m := hmac.New(sha256.New, t.cfg.Secret[:])
	m.Write(h[:atProof])
	for _, at := range []int{atFrom, atTo} {
		card := sha256.Sum256(t.cards[binary.LittleEndian.Uint32(h[at:])])
		m.Write(card[:])
	}
	m.Write([]byte(t.cfg.JobID))
	return m.Sum(nil)
}

// onHello handles a hello from an unproven sender.
func (t *Transport) onHello(b []byte) {
	if len(b) != helloSize || string(b[:len(greeting)]) != greeting {
		t.refuse("a greeting of another kind", world.None)
		return
	}
	h := hello(b)
	from, to := binary.LittleEndian.Uint32(h[atFrom:]), binary.LittleEndian.Uint32(h[atTo:])
	if to != uint32(t.cfg.Rank) || from == to || from >= uint32(t.cfg.Size) || !t.Reaches(world.Rank(from)) {
		t.refuse("it is for another rank or job", world.None)
		return
	}
	p := t.peer(world.Rank(from))
	switch s := p.handshake; {
	case s == nil || p.lost:
	case !s.connected:
		s.unanswered = &h
	default:
		t.onHelloFrom(p, &h)
	}
}

// onHelloFrom handles a hello that claims to come from p.
func (t *Transport) onHelloFrom(p *peer, h *hello) {
	s := p.handshake
	theirs := nonce(h[atNonce:])
	proven := nonce(h[atEcho:]) == s.ours
	if proven && !hmac.Equal(h[atProof:], t.proof(h)) {
		t.refuse("its proof is wrong: the secrets differ", p.rank)
		return
	}
	if s.admitted && theirs != s.theirs {
		return
	}
	before := s.theirs
	s.theirs = theirs
	if proven && !s.admitted {
		s.admitted = true
		in, out := t.tokens(p)
		t.ucp.Admit(int(p.rank), in, out)
	}
	if (theirs != before || s.admitted && !s.admitSent) && !t.sendHello(p) {
		s.theirs = before
	}
	if proven && h[atAdmits] == 1 {
		p.open, p.handshake = true, nil
		t.log.Debug("connected", "rank", t.cfg.Rank, "peer", p.rank)
	}
}

// tokens returns the tokens of p's frames and of this rank's. They are derived from the job's
// secret and both nonces, so no other process can compute them.
func (t *Transport) tokens(p *peer) (in, out uint64) {
	low, high := [2][]byte{p.handshake.ours[:], t.cards[t.cfg.Rank]}, [2][]byte{p.handshake.theirs[:], t.cards[p.rank]}
	if p.rank < t.cfg.Rank {
		low, high = high, low
	}
	caller, callee := seal.Keys(t.cfg.Secret[:],
		bytes.Join([][]byte{low[0], high[0], low[1], high[1], []byte(t.cfg.JobID)}, nil))
	if p.rank > t.cfg.Rank {
		caller, callee = callee, caller
	}
	token := func(k seal.Key) uint64 { return binary.LittleEndian.Uint64(k[:]) | 1 } // 0 is no token
	return token(caller), token(callee)
}

// refuse logs a refused hello: the 1st, 2nd, 4th, 8th ... time.
func (t *Transport) refuse(why string, claims world.Rank) {
	if t.forged++; bits.OnesCount(t.forged) == 1 {
		t.log.Warn("refused a greeting over UCX", "rank", t.cfg.Rank, "claims", claims, "why", why, "times", t.forged)
	}
}
