package tcp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"gompi/transport"
)

// A rawConn is a connection to a rank made by hand.
type rawConn struct {
	t *testing.T
	net.Conn
	r *rank
}

func dialRaw(t *testing.T, r *rank) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", netip.AddrPortFrom(r.loopback, r.card.port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &rawConn{t, c, r}
}

// send writes b.
func (s *rawConn) send(b []byte) {
	s.t.Helper()
	if _, err := s.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// receive reads n bytes while the rank is polled. It returns fewer when the rank closes the
// connection.
func (s *rawConn) receive(n int) []byte {
	s.t.Helper()
	b := make([]byte, n)
	for have, end := 0, time.Now().Add(timeout); have < n; {
		s.r.Poll(-1)
		s.SetReadDeadline(time.Now().Add(time.Millisecond))
		k, err := s.Read(b[have:])
		have += k
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
			return b[:have]
		}
	}
	return b
}

// closed checks that the rank closes the connection without another word.
func (s *rawConn) closed(why string) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		s.r.Poll(-1)
		s.SetReadDeadline(time.Now().Add(time.Millisecond))
		k, err := s.Read(make([]byte, 1))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if k > 0 {
			s.t.Errorf("%s: the rank has more to say", why)
		}
		return
	}
	s.t.Errorf("%s: the rank does not close the connection", why)
}

// sendHello says hello as rank caller and returns the handshake as challenged.
func (s *rawConn) sendHello(caller int) transcript {
	s.t.Helper()
	tr := transcript{caller: uint32(caller), callee: uint32(s.r.cfg.Rank), listenerNonce: s.r.card.nonce,
		fromCaller: [32]byte{1},
		from:       s.LocalAddr().(*net.TCPAddr).AddrPort(), to: s.RemoteAddr().(*net.TCPAddr).AddrPort()}
	s.r.agree(&tr)
	s.send(tr.hello())
	b := s.receive(replySize)
	if len(b) < replySize {
		s.t.Fatalf("no challenge: % x", b)
	}
	if got, _, err := parseStep(b); err != nil || got != stepChallenge {
		s.t.Fatalf("no challenge: step %d, %v", got, err)
	}
	copy(tr.fromCallee[:], b[8:])
	return tr
}

// refused checks that the rank says why it closes the connection.
func (s *rawConn) refused(want reason) {
	s.t.Helper()
	b := s.receive(replySize)
	if len(b) < replySize {
		s.t.Fatalf("no refusal: % x", b)
	}
	if got, why, err := parseStep(b); err != nil || got != stepRefusal || why != want {
		s.t.Fatalf("step %d with reason %d, %v; want a refusal with %d", got, why, err, want)
	}
	s.closed("after the refusal")
}

// unharmed checks that no rank has received anything from rawConns, and that ranks still connect.
func unharmed(t *testing.T, ranks []*rank) {
	t.Helper()
	ranks[1].sendText(0, "hello")
	until(t, ranks, "a frame", func() bool { return len(ranks[0].got) == 1 })
	if ranks[0].got[0] != "hello" || len(ranks[0].lost) > 0 {
		t.Errorf("got %q, lost %v", ranks[0].got, ranks[0].lost)
	}
}

func TestGarbageIsTurnedAway(t *testing.T) {
	ranks := startAll(t, 2, nil)
	for _, b := range []string{
		"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a browser that lost its way, far from home and late at night\r\n\r\n",
		greeting + "\x09\x01\x00", // another version
		greeting + "\x03\x03\x00", // proof first
		greeting + "\x03\x06\x00", // go first
	} {
		s := dialRaw(t, ranks[0])
		s.send(append([]byte(b), make([]byte, helloSize)...))
		s.closed("garbage")
	}
	unharmed(t, ranks)
}

func TestAWrongListenerIsReported(t *testing.T) {
	ranks := startAll(t, 2, nil)
	for name, change := range map[string]func(tr *transcript){
		"another job's card": func(tr *transcript) { tr.listenerNonce[0]++ },
		"another rank":       func(tr *transcript) { tr.callee = 1 },
		"no rank":            func(tr *transcript) { tr.caller = 2 },
		"the rank itself":    func(tr *transcript) { tr.caller = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := dialRaw(t, ranks[0])
			tr := transcript{caller: 1, callee: 0, listenerNonce: ranks[0].card.nonce}
			change(&tr)
			s.send(tr.hello())
			s.refused(wrongListener)
		})
	}
	unharmed(t, ranks)
}

func TestWrongProofIsRefused(t *testing.T) {
	ranks := startAll(t, 2, nil)
	other := secret
	other[5]++
	for name, proof := range map[string]func(tr *transcript) []byte{
		"none":            func(tr *transcript) []byte { return make([]byte, macSize) },
		"another secret":  func(tr *transcript) []byte { return tr.mac(&other, "job", stepProof, 0) },
		"another job":     func(tr *transcript) []byte { return tr.mac(&secret, "jab", stepProof, 0) },
		"the other's own": func(tr *transcript) []byte { return tr.mac(&secret, "job", stepWelcome, 0) },
		"another rank's": func(tr *transcript) []byte {
			c := *tr
			c.caller = 7
			return c.mac(&secret, "job", stepProof, 0)
		},
		"an old one's": func(tr *transcript) []byte {
			c := *tr
			c.fromCallee[0]++
			return c.mac(&secret, "job", stepProof, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialRaw(t, ranks[0])
			tr := s.sendHello(1)
			s.send(stepProof.reply(0, proof(&tr)))
			s.refused(badProof)
		})
	}
	unharmed(t, ranks)
}

// A recorded handshake is of no use: the challenge is another each time.
func TestReplayIsRefused(t *testing.T) {
	ranks := startAll(t, 2, nil)
	s := dialRaw(t, ranks[0])
	tr := s.sendHello(1)
	proof := stepProof.reply(0, tr.mac(&secret, "job", stepProof, 0))
	s.send(proof)
	if b := s.receive(replySize); len(b) < replySize || !tr.proves(b[8:], &secret, "job", stepWelcome, 0) {
		t.Fatalf("a right proof is not welcomed: % x", b)
	}
	s.Close()
	s = dialRaw(t, ranks[0])
	if again := s.sendHello(1); again.fromCallee == tr.fromCallee {
		t.Fatal("the same challenge twice")
	}
	s.send(proof)
	s.refused(badProof)
	unharmed(t, ranks)
}

func TestFramesBeforeTheProofAreNotRead(t *testing.T) {
	ranks := startAll(t, 2, nil)
	s := dialRaw(t, ranks[0])
	s.sendHello(1)
	var frame [transport.HeaderSize]byte
	(&transport.Header{Kind: transport.Eager}).Encode(frame[:])
	s.send(frame[:])
	s.closed("a frame instead of the proof")
	unharmed(t, ranks)
}

func TestSilentConnectionsAreClosedInTime(t *testing.T) {
	ranks := startAll(t, 2, nil)
	silent := dialRaw(t, ranks[0])
	slow := dialRaw(t, ranks[0])
	hello := (&transcript{caller: 1, listenerNonce: ranks[0].card.nonce}).hello()
	slow.send(hello[:10])
	half := dialRaw(t, ranks[0])
	half.sendHello(1)
	until(t, ranks[:1], "the connections", func() bool { return len(ranks[0].pending) == 3 })
	unharmed(t, ranks) // they don't stand in the way
	for i, b := range hello[10:20] {
		ranks[0].pass(time.Duration(pendingTime) / 20)
		if len(ranks[0].pending) != 3 {
			t.Fatalf("a connection was closed after %d/20 of its time", i+1)
		}
		slow.send([]byte{b}) // byte by byte gains no time
	}
	ranks[0].pass(time.Duration(pendingTime))
	if n := len(ranks[0].pending); n != 0 {
		t.Errorf("%d connections have more than their time", n)
	}
	for _, s := range []*rawConn{silent, slow, half} {
		s.closed("its time is over")
	}
}

func TestPendingConnectionsAreBounded(t *testing.T) {
	ranks := startAll(t, 2, nil)
	const bound = 2 + extraPending
	first := dialRaw(t, ranks[0])
	until(t, ranks[:1], "the first", func() bool { return len(ranks[0].pending) == 1 })
	for range bound + 4 {
		dialRaw(t, ranks[0])
	}
	most := 0
	until(t, ranks[:1], "all to be taken in", func() bool {
		most = max(most, len(ranks[0].pending))
		return ranks[0].lastGen == bound+5
	})
	if most != bound {
		t.Errorf("up to %d pending connections, want %d", most, bound)
	}
	first.closed("the oldest makes room")
	unharmed(t, ranks)
}

// Who answers a call without knowing the secret hears no frame.
func TestFalseCalleeIsNotTrusted(t *testing.T) {
	ranks := startAll(t, 2, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	cards := [][]byte{ranks[0].Card(), (&card{port: uint16(port), local: true}).encode()}
	if err := ranks[0].SetCards(cards); err != nil {
		t.Fatal(err)
	}
	received := make(chan []byte, 1)
	go func() { // ends when the rank hangs up
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.ReadFull(c, make([]byte, helloSize))
		c.Write(stepChallenge.reply(0, make([]byte, challengeSize)))
		proof := make([]byte, replySize)
		io.ReadFull(c, proof)
		// The best he can do is to send the caller's own proof back.
		c.Write(stepWelcome.reply(0, proof[8:]))
		rest, _ := io.ReadAll(c)
		received <- rest
	}()
	ranks[0].sendText(1, "confidential")
	until(t, ranks[:1], "the refusal", func() bool { return ranks[0].lost[1] != nil })
	if rest := <-received; len(rest) > 0 {
		t.Errorf("the false rank was told %q", rest)
	}
}
