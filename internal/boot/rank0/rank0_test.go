package rank0

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/seal"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// timeout bounds every wait for a certain event: a busy machine may take long.
const timeout = time.Minute

// listen returns a listener on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serve starts the server of a job of two ranks on ln until the test ends.
func serve(t *testing.T, ln net.Listener) {
	h, own := New(2, "job", [32]byte{1}, ln, func() {})
	t.Cleanup(func() {
		h.Close()
		own.Close()
	})
}

func TestTheServerGroupsRanksByHost(t *testing.T) {
	h, own := New(4, "job", [32]byte{1}, listen(t), func() {})
	conns := []net.Conn{own}
	for r := 1; r < 4; r++ {
		near, far := net.Pipe()
		conns = append(conns, near)
		go h.serve(&rankConn{rank: world.Rank(r), conn: far})
	}
	places := [][2]string{{"a", "1"}, {"b", "2"}, {"a", "1"}, {"a", "3"}} // two hosts are called a
	var all sync.WaitGroup
	got := make([]*wire.Welcome, 4)
	for r, conn := range conns {
		all.Go(func() {
			conn.Write(wire.Append(nil, &wire.Join{Host: places[r][0], Machine: places[r][1]}))
			in := wire.Frames{Limit: wire.MaxDown}
			if m, err := wire.Receive(conn, &in); err == nil {
				got[r], _ = m.(*wire.Welcome)
			}
		})
	}
	all.Wait()
	want := [][3]int{{0, 2, 0}, {0, 1, 1}, {1, 2, 0}, {0, 1, 2}} // local rank, local size, node
	for r, w := range got {
		if w == nil || [3]int{int(w.LocalRank), w.LocalSize, w.Node} != want[r] || len(w.Hosts) != 3 {
			t.Errorf("rank %d: %+v, want local rank, size and node %v of 3", r, w, want[r])
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
}

func TestNoProcessWithoutTheSecretGetsIn(t *testing.T) {
	ln := listen(t)
	serve(t, ln)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	at := ln.Addr().String()
	if _, err := reach(ctx, &[32]byte{2}, 1, []string{at}); !errors.Is(err, seal.ErrSecret) {
		t.Errorf("with another Secret: %v, want %v", err, seal.ErrSecret)
	}
	if conn, err := reach(ctx, &[32]byte{1}, 5, []string{at}); err == nil { // as rank 5 of 2
		conn.SetDeadline(time.Now().Add(timeout))
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("rank 5 of 2 is let in")
		}
		conn.Close()
	}
	conn, err := reach(ctx, &[32]byte{1}, 1, []string{"127.0.0.1:1", at}) // the right one is found among others
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Loopback leads to rank 0 from its own network alone, and is tried first there.
func TestAContactsLoopbackIsForItsOwnNetwork(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.7")
	for network, want := range map[string][][]string{network(): {{"127.0.0.1:4000"}, {"192.0.2.7:4000"}},
		"another": {{"192.0.2.7:4000"}}} {
		at, err := (&Contact{Network: network, Port: 4000, Addrs: []netip.Addr{addr}}).Endpoints()
		if err != nil || !slices.EqualFunc(at, want, slices.Equal) {
			t.Errorf("rank 0 is on network %s: tried at %v, %v; want %v", network, at, err, want)
		}
	}
	if at, err := (&Contact{Network: "another", Port: 4000}).Endpoints(); err == nil ||
		!strings.Contains(err.Error(), "loopback alone") {
		t.Errorf("a rank 0 on loopback of another network: tried at %v, %v", at, err)
	}
}

func FuzzContact(f *testing.F) {
	f.Add((&Contact{Secret: [32]byte{9}, Network: network(), Port: 4000, Addrs: OwnAddrs()}).String())
	f.Add("gompi2/AAAA//1/::1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseContact(s)
		if err != nil {
			return
		}
		b, err := ParseContact(a.String())
		if err != nil || a.Secret != b.Secret || a.Network != b.Network || a.Port != b.Port ||
			!slices.Equal(a.Addrs, b.Addrs) {
			t.Fatalf("%q came back as %q, %v", s, b, err)
		}
	})
}

func TestTheServerAcceptsAgainAfterAnError(t *testing.T) {
	flaky := &stress.Exhausted{Listener: listen(t)}
	flaky.Left.Store(2)
	serve(t, flaky)
	conn, err := reach(t.Context(), &[32]byte{1}, 1, []string{flaky.Addr().String()}) // at most reachTime
	if err != nil {
		t.Fatalf("after %v: %v", syscall.EMFILE, err)
	}
	conn.Close()
}

func TestRanksLearnWhyOthersDidNotGetIn(t *testing.T) {
	s := &Server{size: 2, ranks: make([]*rankConn, 2), acceptErr: syscall.EMFILE}
	s.GiveUp(time.Second)
	if want := "the first is rank 0; rank 0 could not accept connections: too many open files"; !strings.Contains(string(s.backlog), want) {
		t.Errorf("ranks get %q, want %q", s.backlog, want)
	}
}

// Whoever connects and says nothing keeps no rank out, however many there are.
func TestSilentConnectionsDelayNoRank(t *testing.T) {
	ln := listen(t)
	serve(t, ln)
	for range 600 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	conn, err := reach(t.Context(), &[32]byte{1}, 1, []string{ln.Addr().String()}) // at most reachTime
	if err != nil {
		t.Fatalf("behind strangers that say nothing: %v", err)
	}
	conn.Close()
}
