package tcp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
	"gompi/transport"
)

// Ranks send to each other and poll in random order from the first moment on,
// so that calls cross in every way they can. Whatever happens, each frame
// arrives once and in order, and no rank is lost.
func TestCrossedCallsLoseNothing(t *testing.T) {
	reached := make(map[phase]int)
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := 2 + rng.IntN(3)
		ranks := startAll(t, size, nil)
		sent := make(map[[2]world.Rank]int)
		for range 20 + rng.IntN(100) {
			r := world.Rank(rng.IntN(size))
			if to := world.Rank(rng.IntN(size)); rng.IntN(4) == 0 && to != r {
				ranks[r].sendText(to, fmt.Sprintf("%d %d %d", r, to, sent[[2]world.Rank{r, to}]))
				sent[[2]world.Rank{r, to}]++
			} else {
				ranks[r].Poll(to)
			}
			for _, s := range ranks[r].socks {
				if s != nil {
					reached[s.phase]++
				}
			}
		}
		total := 0
		for _, n := range sent {
			total += n
		}
		until(t, ranks, "all frames", func() bool {
			n := 0
			for _, r := range ranks {
				n += len(r.got)
			}
			return n >= total
		})
		for _, r := range ranks {
			next := make(map[world.Rank]int)
			for i, got := range r.got {
				from := r.from[i]
				if want := fmt.Sprintf("%d %d %d", from, r.cfg.Rank, next[from]); got != want {
					t.Fatalf("seed %d: rank %d got %q, want %q", seed, r.cfg.Rank, got, want)
				}
				next[from]++
			}
			for peer, err := range r.lost {
				t.Fatalf("seed %d: rank %d lost rank %d: %v", seed, r.cfg.Rank, peer, err)
			}
			r.Close(true)
		}
	}
	for ph := calling; ph <= open; ph++ {
		if reached[ph] == 0 {
			t.Errorf("no connection was ever seen in phase %d: the test does not cover it", ph)
		}
	}
}

// Before the welcome, a connection may break on either side, and none of it is
// fatal.
func TestBrokenHandshakesAreRepeated(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		ranks := startAll(t, 2, nil)
		ranks[0].sendText(1, "a")
		if seed%2 == 0 {
			ranks[1].sendText(0, "b")
		}
		for broken := 0; broken < 2; {
			r := ranks[rng.IntN(2)]
			r.Poll(-1)
			s := anySock(r.Transport)
			if s == nil {
				continue
			}
			if s.phase == open {
				break
			}
			if s.phase != proofSent && s.phase != welcomed && rng.IntN(3) == 0 {
				_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
				broken++
			}
		}
		until(t, ranks, "the frame", func() bool {
			for _, r := range ranks {
				r.clock.now += int64(10 * time.Millisecond) // pauses are short here
			}
			return len(ranks[1].got) == 1 && (seed%2 == 1 || len(ranks[0].got) == 1)
		})
		for _, r := range ranks {
			if len(r.lost) > 0 {
				t.Fatalf("seed %d: rank %d lost %v", seed, r.cfg.Rank, r.lost)
			}
			r.Close(true)
		}
	}
}

func anySock(t *Transport) *sock {
	for _, s := range t.socks {
		if s != nil {
			return s
		}
	}
	return nil
}

func TestHeldCallIsWelcomedWhenOursFails(t *testing.T) {
	ranks := startAll(t, 2, nil)
	low, high := ranks[0], ranks[1]
	low.sendText(1, "from low")
	for low.Poll(-1); low.peers[1].call.sock.phase != proofSent; low.Poll(-1) {
		high.Poll(-1)
	}
	// high does not read the proof, but calls by itself: that call is held.
	high.sendText(0, "from high")
	for low.peers[1].incoming == nil {
		stepCaller(high.Transport, 0)
		low.Poll(-1)
	}
	if ph := low.peers[1].incoming.phase; ph != held {
		t.Fatalf("the other call is in phase %d, want %d", ph, held)
	}
	low.callFailed(low.peers[1], errors.New("broken by the test"), hard)
	until(t, ranks, "both frames", func() bool { return len(low.got) == 1 && len(high.got) == 1 })
	if low.got[0] != "from high" || high.got[0] != "from low" {
		t.Errorf("got %q and %q", low.got, high.got)
	}
}

// stepCaller advances t's own call to peer only.
func stepCaller(t *Transport, peer world.Rank) {
	if t.callable() {
		t.startCalls()
	}
	if p := t.peers[peer]; p != nil && p.call != nil && p.call.sock != nil {
		t.advanceCall(p, p.call.sock)
	}
}

func TestLeavingRankSaysSo(t *testing.T) {
	ranks := startAll(t, 3, nil)
	ranks[0].sendText(1, "x") // keeps rank 0 in Close: rank 1 does not read on
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, memory(64<<20), 0)
	ranks[2].sendText(0, "too late")
	for range 100 {
		ranks[0].Close(false)
		ranks[2].Poll(-1)
	}
	if err := ranks[2].lost[0]; !errors.Is(err, transport.ErrGone) {
		t.Errorf("calling a rank that closes: lost with %v, want %v", err, transport.ErrGone)
	}
}

func TestAnotherSecretGetsNoFrameIn(t *testing.T) {
	ranks := startAll(t, 2, func(cfg *Config) { cfg.Secret[0] = byte(10 + cfg.Rank) })
	ranks[0].sendText(1, "secret")
	until(t, ranks, "the refusal", func() bool { return ranks[0].lost[1] != nil })
	err := ranks[0].lost[1]
	if !errors.Is(err, transport.ErrUnreachable) || !strings.Contains(err.Error(), badProof.String()) {
		t.Errorf("lost with %q, want %q with %q", err, transport.ErrUnreachable, badProof)
	}
	if len(ranks[1].got) > 0 || len(ranks[1].lost) > 0 {
		t.Errorf("the callee got %q, lost %v", ranks[1].got, ranks[1].lost)
	}
}

func TestOutOfDescriptorsIsWaitedOut(t *testing.T) {
	ranks := startAll(t, 2, nil)
	var full []int
	for len(full) < 1<<16 {
		fd, err := unix.FcntlInt(uintptr(ranks[0].listener), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			break
		}
		full = append(full, fd)
	}
	free := func() {
		for _, fd := range full {
			unix.Close(fd)
		}
		full = nil
	}
	defer free()
	if len(full) == 1<<16 {
		t.Skip("there is no end to descriptors here")
	}
	ranks[0].sendText(1, "patience")
	for range 10 {
		ranks[0].Poll(-1)
		ranks[1].Poll(-1)
	}
	if len(ranks[0].lost) > 0 {
		t.Fatalf("gave up at once: %v", ranks[0].lost)
	}
	unix.Close(full[0]) // one: the caller gets through, the callee does not
	full = full[1:]
	for range 10 {
		ranks[0].pass(pauses)
		ranks[1].Poll(-1)
	}
	free()
	until(t, ranks, "the frame", func() bool {
		ranks[0].clock.now += pauses
		ranks[1].clock.now += pauses
		return len(ranks[1].got) == 1
	})
}

const pauses = 110_000_000 // ns: longer than any pause between first rounds

func TestNonsenseFromAPeerEndsIt(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "x")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	if _, err := unix.Write(ranks[0].peers[1].conn.fd, []byte(strings.Repeat("nonsense", 10))); err != nil {
		t.Fatal(err)
	}
	until(t, ranks, "the end", func() bool { return ranks[1].lost[0] != nil && ranks[0].lost[1] != nil })
	if err := ranks[1].lost[0]; !errors.Is(err, transport.ErrProtocol) {
		t.Errorf("lost with %v, want %v", err, transport.ErrProtocol)
	}
}

func TestHeadersMayArriveByteByByte(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "x")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	frame := make([]byte, transport.HeaderSize+3)
	h := transport.Header{Kind: transport.Eager, Len: 3}
	for range 3 {
		h.Encode(frame)
		copy(frame[transport.HeaderSize:], "abc")
		for _, b := range frame {
			if _, err := unix.Write(ranks[0].peers[1].conn.fd, []byte{b}); err != nil {
				t.Fatal(err)
			}
			ranks[1].Poll(0)
		}
	}
	until(t, ranks, "three frames", func() bool { return len(ranks[1].got) == 4 })
	for _, got := range ranks[1].got[1:] {
		if got != "abc" {
			t.Errorf("got %q, want abc", got)
		}
	}
}
