package tcp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/poll"
	"gompi/internal/sockets"
	"gompi/transport"
)

// How long a call waits. A rank that computes may not answer for minutes, while its kernel accepts
// connections. So silence is no failure, only a reason to try another address, if there is one.
const (
	connectTime = 5 * int64(time.Second)  // for TCP to connect
	silenceTime = 2 * int64(time.Second)  // for the challenge, doubled each round
	silenceMax  = 60 * int64(time.Second) // up to this
	welcomeTime = 20 * int64(time.Second) // for the welcome
	warnTime    = 30 * int64(time.Second) // until the log names the silent peer
	pauseTime   = int64(100 * time.Millisecond)
)

// How many rounds a failure may last, since failures may pass. A call ends when every address has
// failed in more rounds than its failure allows.
const (
	hard    = 0           // refused, unreachable, or another program answers
	passing = 3           // no answer from TCP, dropped connection, refusal without proof, no descriptors
	endless = math.MaxInt // connected, but silent
)

// A call is this rank's attempt to connect to a peer: one address at a time, round after round.
type call struct {
	listenerNonce [nonceSize]byte
	addrs         []netip.AddrPort
	errs          []error // latest failure of each address
	next          int     // index of the present address
	round         int
	retry         bool  // some address of this round is to be tried again
	sock          *sock // nil between rounds
	due           int64 // of the next round
}

// startCalls begins to connect to the peers of queued Sends.
func (t *Transport) startCalls() int {
	n := 0
	for i := 0; i < len(t.calls); i++ { // Lost may lead to a Send
		p := t.calls[i]
		p.due = false
		if p.idle() {
			t.startCall(p)
			n++
		}
	}
	t.calls = t.calls[:0]
	return n
}

func (t *Transport) startCall(p *peer) {
	p.call = new(call)
	if raw := t.cards[p.rank]; raw != nil {
		var c card
		if err := c.decode(raw); err != nil {
			t.lose(p, unreachable(err.Error()))
			return
		}
		p.call.listenerNonce = c.nonce
		p.call.addrs = c.candidates(t.own, t.loopbackTo(p, &c))
		p.call.errs = make([]error, len(p.call.addrs))
	}
	t.tryNext(p)
}

// loopbackTo returns the loopback address if the address leads to p, which has published c.
func (t *Transport) loopbackTo(p *peer, c *card) (a netip.Addr) {
	if p.near = t.sharesLoopback(p.rank, c); p.near {
		a = t.loopback
	}
	return a
}

// tryNext connects to the next address, until a connect does not fail at once.
func (t *Transport) tryNext(p *peer) {
	c := p.call
	for c.next < len(c.addrs) {
		err := t.dial(p)
		if err == nil {
			return
		}
		c.fail(err, dialRounds(err))
	}
	if !c.retry {
		t.lose(p, c.failure())
		return
	}
	c.due = t.clock.now + pauseTime<<min(c.round, 5)
	c.next, c.retry = 0, false
	c.round++
	t.remind(c.due)
}

func (c *call) fail(err error, rounds int) {
	c.errs[c.next] = err
	c.retry = c.retry || c.round < rounds
	c.next++
}

// failure names every address and its error; successive addresses share an equal error. If no
// process listens at any of them, failure is an ErrRefused.
func (c *call) failure() error {
	if len(c.addrs) == 0 {
		return unreachable("it has published no address that leads there from here")
	}
	var b strings.Builder
	refused := true
	for i, a := range c.addrs {
		fmt.Fprint(&b, a)
		refused = refused && errors.Is(c.errs[i], unix.ECONNREFUSED)
		switch last := i == len(c.addrs)-1; {
		case last:
			fmt.Fprintf(&b, ": %v", c.errs[i])
		case c.errs[i].Error() == c.errs[i+1].Error():
			b.WriteString(", ")
		default:
			fmt.Fprintf(&b, ": %v; ", c.errs[i])
		}
	}
	if refused {
		return fmt.Errorf("%w: %s", transport.ErrRefused, &b)
	}
	return unreachable(b.String())
}

func unreachable(why string) error {
	return fmt.Errorf("%w: %s", transport.ErrUnreachable, why)
}

// dialRounds returns the number of rounds for which err may last.
func dialRounds(err error) int {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EAGAIN, unix.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return passing
		}
	}
	return hard
}

// dial starts to connect to the call's next address.
func (t *Transport) dial(p *peer) error {
	family, sa := toSockaddr(p.call.addrs[p.call.next])
	fd, err := sockets.OpenTCP(family)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return err
	}
	s, err := t.adopt(fd, calling, p, poll.Write)
	if err != nil {
		return err
	}
	p.call.sock = s
	t.expect(s, connectTime)
	return nil
}

// callFailed handles the failure of the present address.
func (t *Transport) callFailed(p *peer, err error, rounds int) {
	t.log.Debug("call failed", "rank", t.cfg.Rank, "peer", p.rank, "address", p.call.addrs[p.call.next], "err", err)
	t.drop(p.call.sock)
	p.call.sock = nil
	p.call.fail(err, rounds)
	if p.incoming == nil {
		t.tryNext(p)
		return
	}
	// The peer's own call will connect the two.
	p.call = nil
	if p.incoming.phase == held {
		t.welcome(p.incoming)
	}
}

// advanceCall takes the caller's next step after an event on its socket.
func (t *Transport) advanceCall(p *peer, s *sock) {
	err, rounds := t.stepCall(p, s), hard
	if s.phase != calling && (ended(err) || hint(err)) {
		rounds = passing
	}
	if err != nil && p.call != nil && p.call.sock == s {
		t.callFailed(p, err, rounds)
	}
}

func (t *Transport) stepCall(p *peer, s *sock) error {
	if s.phase == calling {
		return t.sendHello(p, s)
	}
	done, err := s.readShake(replySize)
	switch {
	case err != nil || !done:
		return err
	case s.phase == helloSent:
		return t.sendProof(s)
	default:
		return t.receiveWelcome(p, s)
	}
}

// ended reports whether err means only that the connection has ended.
func ended(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrShortWrite)
}

// sendHello sends the hello once TCP has connected.
func (t *Transport) sendHello(p *peer, s *sock) error {
	e, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if e != 0 {
		return unix.Errno(e)
	}
	tr := &s.shake.transcript
	tr.caller, tr.callee, tr.listenerNonce = uint32(t.cfg.Rank), uint32(p.rank), p.call.listenerNonce
	own, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	tr.from, tr.to = toAddrPort(own), p.call.addrs[p.call.next]
	t.agree(tr)
	rand.Read(tr.fromCaller[:])
	s.phase = helloSent // TCP has connected, even if the rest fails
	if err := s.write(tr.hello()); err != nil {
		return err
	}
	t.watch(s, poll.Read)
	if len(p.call.addrs) > 1 {
		t.expect(s, min(silenceTime<<min(p.call.round, 8), silenceMax))
	} else {
		t.expect(s, warnTime)
	}
	return nil
}

// sendProof answers the challenge.
func (t *Transport) sendProof(s *sock) error {
	body, err := s.reply(stepChallenge)
	if err != nil {
		return err
	}
	tr := &s.shake.transcript
	copy(tr.fromCallee[:], body)
	if err := s.write(stepProof.reply(0, t.mac(tr, stepProof, 0))); err != nil {
		return err
	}
	s.phase = proofSent
	t.expect(s, welcomeTime)
	return nil
}

// receiveWelcome checks the callee's proof and completes the connection.
func (t *Transport) receiveWelcome(p *peer, s *sock) error {
	tr := &s.shake.transcript
	body, err := s.reply(stepWelcome)
	if r := (refusal{}); errors.As(err, &r) && t.proves(tr, body, stepRefusal, r.why) {
		if r.why == leaving {
			t.lose(p, transport.ErrGone)
			return nil
		}
		return refusal{why: r.why, proven: true}
	}
	if err != nil {
		return err
	}
	if !t.proves(tr, body, stepWelcome, 0) {
		return errors.New("the process that answers there does not know this job's secret")
	}
	var b [goSize]byte
	stepGo.open(b[:], 0)
	if err := s.write(b[:]); err != nil {
		return err
	}
	t.connected(p, s)
	return nil
}

// A refusal is the callee's message that refuses the connection.
type refusal struct {
	why    reason
	proven bool
}

func (r refusal) Error() string {
	if r.proven {
		return r.why.String()
	}
	return "the process that answers there refuses, without proof: " + r.why.String()
}

// hint reports whether err is a refusal without a MAC, which any process may have sent.
func hint(err error) bool {
	var r refusal
	return errors.As(err, &r) && !r.proven
}

// reply parses a complete message, which must be of step want. For a refusal it returns the body
// and an error.
func (s *sock) reply(want step) (body []byte, err error) {
	b := s.shake.in[:replySize]
	s.shake.have = 0
	got, why, err := parseStep(b)
	switch {
	case err != nil:
		return nil, fmt.Errorf("another program answers there: %w", err)
	case got == stepRefusal:
		return b[8:], refusal{why: why}
	case got != want:
		return nil, fmt.Errorf("handshake answered with step %d, want %d", got, want)
	}
	return b[8:], nil
}

// readShake reads until a message of n bytes is complete.
func (s *sock) readShake(n int) (done bool, err error) {
	for s.shake.have < n {
		k, errno := sockets.Receive(s.fd, s.shake.in[s.shake.have:n])
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return false, nil
		case errno != 0:
			return false, errno
		case k == 0:
			return false, io.ErrUnexpectedEOF
		}
		s.shake.have += k
	}
	return true, nil
}

// write sends a handshake message. The send buffer of an idle connection always holds the message.
func (s *sock) write(b []byte) error {
	n, errno := sockets.Send(s.fd, b)
	if errno != 0 {
		return errno
	}
	if n < len(b) {
		return io.ErrShortWrite
	}
	return nil
}

// agree sets the other fields of the caller's hello that must be equal at both ends.
func (t *Transport) agree(tr *transcript) {
	tr.sealed = t.cfg.FrameMAC
	tr.network = t.networkOf(tr)
}

// networkOf names the network of the callee's address, if that is a loopback address.
func (t *Transport) networkOf(tr *transcript) (name [networkSize]byte) {
	if tr.to.Addr().IsLoopback() && !tr.sealed {
		name = t.card.network
	}
	return name
}

func (t *Transport) mac(tr *transcript, s step, why reason) []byte {
	return tr.mac(&t.cfg.Secret, t.cfg.JobID, s, why)
}

func (t *Transport) proves(tr *transcript, body []byte, s step, why reason) bool {
	return tr.proves(body, &t.cfg.Secret, t.cfg.JobID, s, why)
}

// callLate handles a call whose present step is late.
func (t *Transport) callLate(p *peer, s *sock) {
	switch {
	case s.phase == calling:
		t.callFailed(p, errors.New("no answer"), passing)
	case s.phase == helloSent && len(p.call.addrs) == 1:
		t.log.Warn("connected, waiting for the rank to answer", "rank", t.cfg.Rank, "peer", p.rank, "address",
			p.call.addrs[0])
		s.shake.due = 0
	default:
		t.callFailed(p, errors.New("connected, but no answer"), endless)
	}
}
