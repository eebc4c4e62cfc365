package ucx

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// acceptTime bounds every wait for a certain event.
const acceptTime = 20 * time.Second

// A rank is a transport and the sink it delivers to. One goroutine drives all of a test.
type rank struct {
	*Transport
	got    []string // payloads
	window []byte   // of the one that is arriving
	lost   map[world.Rank]error
	sent   map[uint64]error // by token
	silent []world.Rank
}

func (r *rank) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	r.window = make([]byte, h.Len) // Take has had the frames that came whole
	return mem.Bytes(r.window), 0
}
func (r *rank) Take(_ world.Rank, _ *transport.Header, payload []byte) bool {
	r.got = append(r.got, string(payload))
	return true
}
func (r *rank) Wants(world.Rank) bool { return false }
func (r *rank) Filled(uint64) mem.Buffer {
	r.got = append(r.got, string(r.window))
	return mem.Buffer{}
}
func (r *rank) Sent(token uint64, err error) {
	if r.sent == nil {
		r.sent = map[uint64]error{}
	}
	r.sent[token] = err
}
func (r *rank) Silent(peer world.Rank)          { r.silent = append(r.silent, peer) }
func (r *rank) Lost(peer world.Rank, err error) { r.lost[peer] = err }

// sendText sends a payload.
func (r *rank) sendText(peer world.Rank, payload string) {
	r.Send(peer, &transport.Header{Kind: transport.Eager}, mem.Bytes([]byte(payload)), 0)
}

// pair makes two ranks over UCX's tcp that do not know each other's cards yet.
func pair(t *testing.T, secrets ...byte) [2]*rank { return pairOver(t, "tcp", secrets...) }

func pairOver(t *testing.T, transports string, secrets ...byte) [2]*rank {
	var ranks [2]*rank
	for i := range ranks {
		r := &rank{lost: map[world.Rank]error{}}
		cfg := Config{Rank: world.Rank(i), Size: 2, Transports: transports, Secret: [32]byte{secrets[i]}}
		var set *poll.Set
		r.Transport, set = start(t, cfg, r)
		ranks[i] = r
		t.Cleanup(func() { set.Close() })
		t.Cleanup(func() { r.Close(true) })
	}
	return ranks
}

func meet(t *testing.T, ranks [2]*rank) {
	cards := [][]byte{ranks[0].Card(), ranks[1].Card()}
	for _, r := range ranks {
		if err := r.SetCards(cards); err != nil {
			t.Fatal(err)
		}
	}
}

// drive polls all until done.
func drive(t *testing.T, what string, done func() bool, all ...interface{ Poll(world.Rank) int }) {
	t.Helper()
	for end := time.Now().Add(acceptTime); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("polled in vain for %s", what)
		}
		for _, one := range all {
			one.Poll(world.None)
		}
	}
}

// An outsider can send anything to a rank's address: none of its frames counts, and the ranks meet
// as if it were not there.
type outsider struct {
	*ucp.Worker
}

func (s outsider) Poll(world.Rank) int {
	for {
		m, ok := s.Next()
		if !ok {
			return s.Worker.Poll()
		}
		s.Done(m)
	}
}

func newOutsider(t *testing.T, victim *rank) outsider {
	o, err := choose(victim.cfg.Transports, os.Getenv("UCX_TLS"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Rank, o.Size = 1, 2; victim.cfg.Transports == "" {
		ports, err := nearest(sysfs, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Devices, o.Verbs = devices(ports), true
	}
	w, err := ucp.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := w.Connect(0, victim.Card()); err != nil {
		t.Fatal(err)
	}
	return outsider{w}
}

// frames sends frames to rank 0 as if rank 1 had, with a token.
func (s outsider) frames(token uint64) {
	s.Admit(0, 0, token)
	h := transport.Header{Kind: transport.Eager, Len: 6}
	h.Encode(s.Header())
	s.Send(0, ucp.First, []byte("forged"))
	h.Len = 100_000
	h.Encode(s.Header())
	s.Send(0, ucp.First, make([]byte, 100_000))
	s.Send(0, ucp.Ack, nil)
}

// overAll runs f on two ranks over UCX's tcp, and over this machine's devices, where it has some.
func overAll(t *testing.T, f func(t *testing.T, ranks [2]*rank)) {
	t.Run("tcp", func(t *testing.T) { f(t, pair(t, 1, 1)) })
	t.Run("RDMA", func(t *testing.T) {
		if !haveDevice() {
			t.Skipf("make rdma: %v", errDevice)
		}
		f(t, pairOver(t, "", 1, 1))
	})
}

func TestFramesOfProcessesOutsideTheJobAreDroppedAndCounted(t *testing.T) {
	overAll(t, outsidersFrames)
}

func outsidersFrames(t *testing.T, ranks [2]*rank) {
	meet(t, ranks)
	s := newOutsider(t, ranks[0])
	for i, token := range []uint64{0, 1, 0xfedcba9876543210} {
		s.frames(token)
		drive(t, "the stranger's messages", func() bool { return ranks[0].ucp.Unauthenticated() == uint64(3*i+3) },
			ranks[0], s)
	}
	ranks[1].sendText(0, "true")
	drive(t, "a frame", func() bool { return len(ranks[0].got) > 0 }, ranks[0], ranks[1], s)
	s.frames(1) // now that rank 1 is known
	drive(t, "the stranger's messages", func() bool { return ranks[0].ucp.Unauthenticated() == 12 }, ranks[0], s)
	if !slices.Equal(ranks[0].got, []string{"true"}) || len(ranks[0].lost) > 0 {
		t.Errorf("got %q, lost %v: want what rank 1 has sent and nothing lost", ranks[0].got, ranks[0].lost)
	}
}

func TestGreetingsOfProcessesOutsideTheJobDoNoHarm(t *testing.T) { overAll(t, outsidersGreetings) }

func outsidersGreetings(t *testing.T, ranks [2]*rank) {
	s := newOutsider(t, ranks[0])
	var claims hello // to be rank 1
	copy(claims[:], greeting)
	binary.LittleEndian.PutUint32(claims[atFrom:], 1)
	copy(claims[atNonce:], "a nonce of the stranger's")
	proven := claims
	copy(proven[atEcho:], ranks[0].peer(1).handshake.ours[:]) // which it cannot know
	copy(proven[atProof:], "not a proof")
	elsewhere := claims
	binary.LittleEndian.PutUint32(elsewhere[atTo:], 7)
	s.SendHello(0, claims[:]) // early: the cards are not known yet
	drive(t, "a greeting", func() bool { return ranks[0].peer(1).handshake.unanswered != nil }, ranks[0], s)
	meet(t, ranks)
	for _, h := range [][]byte{proven[:], elsewhere[:], claims[:20], nil, make([]byte, ucp.HelloSize)} {
		before := ranks[0].forged
		s.SendHello(0, h)
		drive(t, "a refusal", func() bool { return ranks[0].forged > before }, ranks[0], s)
	}
	for i := range 3000 { // before any answer can come
		binary.LittleEndian.PutUint32(claims[atNonce:], uint32(i))
		s.SendHello(0, claims[:])
		ranks[0].Poll(1)
	}
	ranks[1].sendText(0, "true")
	drive(t, "a frame", func() bool { return len(ranks[0].got) > 0 }, ranks[0], ranks[1], s)
	if ranks[0].got[0] != "true" {
		t.Errorf("got %q", ranks[0].got)
	}
}

// Ranks with different secrets take nothing from each other.
func TestAnotherSecretIsRefused(t *testing.T) {
	ranks := pair(t, 1, 2)
	meet(t, ranks)
	ranks[0].sendText(1, "0")
	ranks[1].sendText(0, "1")
	drive(t, "refusals", func() bool { return ranks[0].forged > 0 && ranks[1].forged > 0 }, ranks[0], ranks[1])
	for range 100 {
		ranks[0].Poll(1)
		ranks[1].Poll(0)
	}
	if len(ranks[0].got)+len(ranks[1].got) > 0 {
		t.Errorf("got %q and %q: want nothing", ranks[0].got, ranks[1].got)
	}
}

func TestEachPairHasTokensOfItsOwn(t *testing.T) {
	ranks := pair(t, 1, 1)
	meet(t, ranks)
	a, b := ranks[0].peer(1), ranks[1].peer(0)
	a.handshake.theirs, b.handshake.theirs = b.handshake.ours, a.handshake.ours
	in, out := ranks[0].tokens(a)
	if back, forth := ranks[1].tokens(b); in != forth || out != back || in == out {
		t.Errorf("rank 0 takes %x and sends %x, rank 1 takes %x and sends %x", in, out, back, forth)
	}
	b.handshake.ours[0]++
	if other, _ := ranks[1].tokens(b); other == out {
		t.Error("another nonce makes the same token")
	}
}

// UCX's tcp is used when it is asked for by name, and no other way.
func TestUCXsTCPIsRefused(t *testing.T) {
	for _, c := range []struct{ asked, environment, tls, devices string }{
		{"", "", "ib", ""},
		{"", "rc,ud", "rc,ud", ""},
		{"posix,cma", "tcp", "posix,cma", ""},
		{"tcp", "rc", "tcp", "lo"},
	} {
		if o, err := choose(c.asked, c.environment); err != nil || o.TLS != c.tls || o.Devices != c.devices {
			t.Errorf("%q, UCX_TLS=%q: %+v, %v; want %q on %q", c.asked, c.environment, o, err, c.tls, c.devices)
		}
	}
	for _, environment := range []string{"tcp", "rc, tcp", "all", "^sysv"} {
		_, err := choose("", environment)
		if !errors.Is(err, errTCP) || !strings.Contains(err.Error(), "UCX_TLS="+environment) {
			t.Errorf("UCX_TLS=%q: error %v, want one that quotes it", environment, err)
		}
	}
}

// A rank that has heard a hello, and then closes because another rank lacks RDMA, takes the cards
// of no rank.
func TestCardsAfterCloseMeanNothing(t *testing.T) {
	ranks := pair(t, 1, 1)
	cards := [][]byte{ranks[0].Card(), ranks[1].Card()}
	if err := ranks[1].SetCards(cards); err != nil {
		t.Fatal(err)
	}
	ranks[1].sendText(0, "early")
	drive(t, "a hello", func() bool { return len(ranks[0].used) > 0 }, ranks[0], ranks[1])
	ranks[0].Close(true)
	if err := ranks[0].SetCards(make([][]byte, 2)); err != nil || ranks[0].Reaches(1) {
		t.Errorf("error %v, and it reaches rank 1: %v", err, ranks[0].Reaches(1))
	}
}

// Close waits for a rank that may send, not for one that somebody claims to be.
func TestCloseDoesNotWaitForAClaim(t *testing.T) {
	ranks := pair(t, 1, 1)
	meet(t, ranks)
	s := newOutsider(t, ranks[0])
	var claim hello
	copy(claim[:], greeting)
	binary.LittleEndian.PutUint32(claim[atFrom:], 1)
	copy(claim[atNonce:], "a nonce of the stranger's")
	s.SendHello(0, claim[:])
	drive(t, "the claim", func() bool { return ranks[0].peers[1] != nil }, ranks[0], s)
	drive(t, "the end", func() bool { return ranks[0].Close(false) }, s) // rank 1 answers nothing
}

// A peer that does not answer is reported once, and frames to it end when it is known to have left.
func TestAPeerThatDoesNotAnswerIsReported(t *testing.T) {
	ranks := pair(t, 1, 1)
	meet(t, ranks)
	ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, 1<<20)), 5)
	drive(t, "an answer", func() bool {
		if len(ranks[0].silent) == 0 && ranks[0].Deadline() == 0 {
			t.Fatal("no rank wakes the rank")
		}
		return len(ranks[0].silent) > 0
	}, ranks[0])
	for range 100 {
		ranks[0].Poll(1)
	}
	if !slices.Equal(ranks[0].silent, []world.Rank{1}) || len(ranks[0].lost) > 0 {
		t.Fatalf("silent: %v, lost: %v", ranks[0].silent, ranks[0].lost)
	}
	ranks[0].Ended(1, transport.ErrGone)
	drive(t, "the end", func() bool { return ranks[0].lost[1] != nil }, ranks[0])
	if err := ranks[0].lost[1]; !errors.Is(err, transport.ErrGone) || !errors.Is(ranks[0].sent[5], transport.ErrGone) {
		t.Errorf("lost with %v, sent with %v; want %v", err, ranks[0].sent[5], transport.ErrGone)
	}
}
