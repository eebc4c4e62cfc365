package tcp

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/internal/seal"
	"gompi/transport"
)

// A relay is somebody between rank 0 and rank 1 who does not know the secret: he hands
// on all they say, and adds to it.
type relay struct {
	lies bool // has the hello name the addresses that rank 1 sees

	mu     sync.Mutex
	callee net.Conn
}

// add says something to rank 1.
func (r *relay) add(t *testing.T, b []byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.callee.Write(b); err != nil {
		t.Fatal(err)
	}
}

func (r *relay) serve(caller net.Conn, callee string) {
	defer caller.Close()
	conn, err := net.Dial("tcp", callee)
	if err != nil {
		return
	}
	defer conn.Close()
	r.mu.Lock()
	r.callee = conn
	r.mu.Unlock()
	go func() { // until the connection ends
		defer caller.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buf)
			caller.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := caller.Read(buf)
		if err != nil {
			return
		}
		if r.lies && n == helloSize {
			putAddr(buf[64:], conn.LocalAddr().(*net.TCPAddr).AddrPort())
			putAddr(buf[82:], conn.RemoteAddr().(*net.TCPAddr).AddrPort())
		}
		r.mu.Lock()
		conn.Write(buf[:n])
		r.mu.Unlock()
	}
}

// relayed has rank 0 find a relay where it looks for rank 1.
func relayed(t *testing.T, r *relay, macs bool) []*rank {
	t.Helper()
	ranks := far(t, "127.0.0.2")
	for _, rank := range ranks {
		rank.cfg.FrameMAC = macs
	}
	at := netip.AddrPortFrom(ranks[1].loopback, ranks[1].card.port).String()
	other(t, ranks[1], func(c net.Conn) { go r.serve(c, at) })
	return ranks
}

// forged is a frame that the relay makes.
func forged() []byte {
	b := make([]byte, transport.HeaderSize, transport.HeaderSize+6)
	(&transport.Header{Kind: transport.Eager, Len: 6}).Encode(b)
	return append(b, "forged"...)
}

// A relay is refused before any frame moves, because the two ranks see other addresses.
func TestARelayIsNotLetThrough(t *testing.T) {
	// If he makes it look right, he has no proof that covers that.
	for lies, want := range map[bool]reason{false: translated, true: badProof} {
		t.Run(want.String(), func(t *testing.T) {
			r := relay{lies: lies}
			ranks := relayed(t, &r, false)
			ranks[0].sendText(1, "first")
			until(t, ranks, "an outcome", func() bool { return ranks[0].lost[1] != nil || len(ranks[1].got) > 0 })
			if len(ranks[1].got) > 0 {
				r.add(t, forged())
				until(t, ranks, "the forged frame", func() bool { return len(ranks[1].got) == 2 })
				t.Fatalf("rank 1 got %q through the relay", ranks[1].got)
			}
			if err := ranks[0].lost[1]; !errors.Is(err, transport.ErrUnreachable) ||
				!strings.Contains(err.Error(), want.String()) {
				t.Errorf("lost with %v, want %q", err, want)
			}
		})
	}
}

// With a MAC on each frame a relay may hand on, as one that translates addresses does, but its
// additions end the connection and are not read.
func TestARelayAddsNothingToFramesWithMACs(t *testing.T) {
	var r relay
	ranks := relayed(t, &r, true)
	long := strings.Repeat("0123456789", 50_000)
	ranks[0].sendText(1, "first")
	ranks[0].sendText(1, long)
	until(t, ranks, "both frames", func() bool { return len(ranks[1].got) == 2 && ranks[1].got[1] != "" })
	if ranks[1].got[0] != "first" || ranks[1].got[1] != long {
		t.Fatalf("got %q and %d bytes", ranks[1].got[0], len(ranks[1].got[1]))
	}
	r.add(t, forged())
	ranks[0].sendText(1, strings.Repeat("whatever comes next", 10_000))
	until(t, ranks, "the end", func() bool { return ranks[1].lost[0] != nil })
	if err := ranks[1].lost[0]; !errors.Is(err, transport.ErrProtocol) || len(ranks[1].got) != 2 {
		t.Errorf("got %d frames, lost with %v; want 2 and %v", len(ranks[1].got), err, transport.ErrProtocol)
	}
}

// Frames of all sizes arrive whole and in order, also when the sockets are full, and frames under
// way when a rank closes, too.
func TestFramesWithMACsArriveWhole(t *testing.T) {
	ranks := startAll(t, 2, func(cfg *Config) { cfg.FrameMAC = true })
	var want []string
	for _, n := range []int{0, 1, 15, 4 << 10, seal.MaxPayload - transport.HeaderSize, seal.MaxPayload, 200_001,
		6 << 20, 3} {
		want = append(want, strings.Repeat(string(rune('a'+len(want))), n))
	}
	for _, s := range want {
		ranks[0].sendText(1, s)
		ranks[1].sendText(0, s)
	}
	until(t, ranks, "all frames both ways", func() bool {
		return len(ranks[0].got) == len(want) && len(ranks[1].got) == len(want) && ranks[0].got[len(want)-1] != "" &&
			ranks[1].got[len(want)-1] != ""
	})
	for i, r := range ranks {
		if !slices.Equal(r.got, want) {
			t.Errorf("rank %d: not what was sent", i)
		}
	}
	ranks[0].sendText(1, want[5])
	for ranks[1].lost[0] == nil {
		ranks[0].Close(false)
		ranks[1].Poll(0)
	}
	if err := ranks[1].lost[0]; !errors.Is(err, transport.ErrGone) || len(ranks[1].got) != len(want)+1 {
		t.Errorf("%d frames, lost with %v; want %d and %v", len(ranks[1].got), err, len(want)+1, transport.ErrGone)
	}
}

func TestFrameMACsAreForAllRanks(t *testing.T) {
	var log bytes.Buffer
	ranks := startAll(t, 2, func(cfg *Config) {
		if cfg.Rank == 1 {
			cfg.FrameMAC, cfg.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
		}
	})
	ranks[0].sendText(1, "x")
	until(t, ranks, "the refusal", func() bool { return ranks[0].lost[1] != nil })
	if err := ranks[0].lost[1]; !strings.Contains(err.Error(), macDiffers.String()) {
		t.Errorf("lost with %v, want %q", err, macDiffers)
	}
	// The caller has been told by nobody it can be sure of, four times. Who knows better says it.
	if s := log.String(); strings.Count(s, "refused a connection") != 3 || strings.Count(s, "claims=0") != 3 ||
		!strings.Contains(s, macDiffers.String()) {
		t.Errorf("rank 1 logs\n%s, want that it refused rank 0, the 1st, 2nd and 4th time", s)
	}
}

// A loopback address leads to another process on every host: two relays, one on each, show both
// ranks the same addresses.
func TestLoopbackOfAnotherNetworkIsNoSameAddress(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[1].card.network[0]++
	ranks[0].sendText(1, "x")
	until(t, ranks, "an outcome", func() bool { return ranks[0].lost[1] != nil || len(ranks[1].got) > 0 })
	if err := ranks[0].lost[1]; err == nil || !strings.Contains(err.Error(), otherNetwork.String()) {
		t.Errorf("rank 1 got %q, rank 0 lost it with %v; want %q", ranks[1].got, err, otherNetwork)
	}
}

// Without MACs a frame costs no more: nothing is made or copied for MACs.
func TestConnectionsWithoutMACsHaveNoSeal(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "x")
	until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
	for i, r := range ranks {
		if r.peers[1-i].conn.seal != nil {
			t.Errorf("rank %d seals what it sends", i)
		}
	}
}
