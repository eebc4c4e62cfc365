package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/accept/accepttest"
	"gompi/internal/boot/wire"
	"gompi/internal/challenge"
	"gompi/internal/world"
)

// timeout bounds every wait for what must come: a machine that does other things too
// may take long.
const timeout = time.Minute

// meeting opens n ranks by a shared folder, each in a goroutine, and returns
// what they got.
func meeting(ctx context.Context, dir string, n int, absent ...int) ([]*client, []error) {
	ranks, errs := make([]*client, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		if slices.Contains(absent, r) {
			continue
		}
		all.Go(func() {
			p := &place{launcher: launcher{name: "a test"}, rank: r, size: n, local: true, job: "j=1"}
			b, err := openFile(ctx, p, dir)
			if errs[r] = err; err == nil {
				ranks[r] = b.(*client)
			}
		})
	}
	all.Wait()
	return ranks, errs
}

func meet(t *testing.T, n int) []*client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ranks, errs := meeting(ctx, t.TempDir(), n)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range slices.Backward(ranks) {
			s.Goodbye(false)
			s.conn.Close()
		}
	})
	return ranks
}

// next waits for the next events of a rank.
func next(t *testing.T, s *client) []Event {
	t.Helper()
	for deadline := time.Now().Add(timeout); !s.Pending(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("rank %d: no news in %v", s.info.Rank, timeout)
		}
	}
	return s.Events()
}

func TestRanksWithoutAnAgentMeetByASharedFolder(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	// What a job of the same name has left behind leads nowhere.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	ranks, errs := meeting(ctx, dir, 1)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ranks[0].Goodbye(false)

	ranks, errs = meeting(ctx, dir, 5)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for r, s := range ranks {
		in := s.Info()
		if in.Rank != world.Rank(r) || in.Size != 5 || in.LocalRank != world.LocalRank(r) || in.LocalSize != 5 || in.Nodes != 1 || in.JobID != ranks[0].info.JobID || in.Secret != ranks[0].info.Secret {
			t.Errorf("rank %d has %+v", r, in)
		}
		all.Go(func() {
			cards, err := s.Allgather(ctx, fmt.Append(nil, r*r))
			if err != nil || fmt.Sprintf("%s", cards) != "[0 1 4 9 16]" {
				t.Errorf("rank %d: cards %s, %v", r, cards, err)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, s := range ranks {
		s.Goodbye(false)
	}
}

func TestHubGroupsRanksByHost(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, own := newServer(4, [32]byte{1}, ln, func() {})
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

func TestNewsReachesRanksWithoutAnAgent(t *testing.T) {
	ranks := meet(t, 4)
	if err := ranks[2].Revoke(7, []byte("why")); err != nil {
		t.Fatal(err)
	}
	for _, s := range ranks {
		if e := next(t, s); len(e) != 1 || e[0].Kind != Revoked || e[0].Rank != 2 || e[0].Comm != 7 || string(e[0].Text) != "why" {
			t.Errorf("rank %d hears %+v", s.info.Rank, e)
		}
	}
	ranks[3].conn.Close() // as when it is killed
	for _, s := range ranks[:3] {
		if e := next(t, s); len(e) != 1 || e[0].Kind != Died || e[0].Rank != 3 {
			t.Errorf("rank %d hears %+v", s.info.Rank, e)
		}
	}
	if err := ranks[1].Abort(9, "no disk"); err != nil {
		t.Fatal(err)
	}
	for _, s := range ranks[:3] {
		if e := next(t, s); len(e) != 1 || e[0].Kind != Terminate || string(e[0].Text) != "rank 1 aborted the job with status 9: no disk" {
			t.Errorf("rank %d hears %+v", s.info.Rank, e)
		}
	}
}

func TestARankThatSaysGoodbyeIsNoNews(t *testing.T) {
	ranks := meet(t, 3)
	var all sync.WaitGroup
	for _, s := range ranks {
		all.Go(func() { s.Allgather(t.Context(), nil) })
	}
	all.Wait()
	ranks[1].Goodbye(false)
	ranks[0].Goodbye(false) // and with it the server
	if e := next(t, ranks[2]); len(e) != 1 || e[0].Kind != Left || e[0].Rank != 0 {
		t.Errorf("news: %+v, want that rank 0 has left", e)
	}
	ranks[2].Goodbye(false)
}

// Who inquires hears that a rank has left, before or later.
func TestARankThatLeftIsToldOfWhenSomebodyInquires(t *testing.T) {
	ranks := meet(t, 4)
	var all sync.WaitGroup
	for _, s := range ranks {
		all.Go(func() { s.Allgather(t.Context(), nil) })
	}
	all.Wait()
	if err := ranks[2].Inquire(1); err != nil {
		t.Fatal(err)
	}
	ranks[1].Goodbye(false)
	ranks[3].Goodbye(false)
	if e := next(t, ranks[2]); len(e) != 1 || e[0].Kind != Left || e[0].Rank != 1 {
		t.Errorf("news: %+v, want that rank 1 has left", e)
	}
	if err := ranks[2].Inquire(3); err != nil {
		t.Fatal(err)
	}
	if e := next(t, ranks[2]); len(e) != 1 || e[0].Kind != Left || e[0].Rank != 3 {
		t.Errorf("news: %+v, want that rank 3 has left", e)
	}
	if err := ranks[2].Inquire(1 << 20); err != nil { // there is none
		t.Fatal(err)
	}
	ranks[2].conn.Close()
	for {
		e := next(t, ranks[0])
		if last := e[len(e)-1]; last.Kind == Died && last.Rank == 2 {
			return
		}
	}
}

func TestTheEndOfRankZeroIsToldAsSuch(t *testing.T) {
	ranks := meet(t, 3)
	// As when its process ends: all its connections do.
	ranks[0].conn.Close()
	for _, s := range ranks[1:] {
		if e := next(t, s); e[0].Kind != Died || e[0].Rank != 0 {
			t.Errorf("rank %d hears %+v", s.info.Rank, e)
		}
	}
}

func TestRanksThatDoNotComeAreNamedToThoseThatHave(t *testing.T) {
	t.Parallel() // it waits
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dir := t.TempDir()
	_, errs := meeting(ctx, dir, 4, 2)
	for _, r := range []int{0, 1, 3} {
		if errs[r] == nil || !strings.Contains(errs[r].Error(), "1 of 4 ranks have not come within 1") || !strings.Contains(errs[r].Error(), "s, the first is rank 2") {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWithoutRankZeroTheOthersGiveUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, errs := meeting(ctx, t.TempDir(), 3, 0)
	for _, r := range []int{1, 2} {
		if !errors.Is(errs[r], context.DeadlineExceeded) || !strings.Contains(errs[r].Error(), "looking for rank 0") {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
}

func TestNobodyWithoutTheSecretGetsIn(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, own := newServer(2, [32]byte{1}, ln, func() {})
	defer own.Close()
	defer h.close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	at := ln.Addr().String()
	if _, err := reach(ctx, &[32]byte{2}, 1, []string{at}); !errors.Is(err, challenge.ErrSecret) {
		t.Errorf("with another secret: %v, want %v", err, challenge.ErrSecret)
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

func TestATicketThatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "contact")
	if err := writeContact(path, &contact{port: 1}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", st.Mode(), err)
	}
	if _, err := readContact(path); err != nil {
		t.Error(err)
	}
	os.Chmod(path, 0o620)
	if _, err := readContact(path); !errors.Is(err, errForged) {
		t.Errorf("group-writable: %v, want %v", err, errForged)
	}
	link := filepath.Join(dir, "link")
	os.Symlink(path, link)
	if _, err := readContact(link); err == nil {
		t.Error("a symbolic link is followed")
	}
}

// Loopback leads to rank 0 from its own network alone, and is tried first there.
func TestATicketsLoopbackIsForItsOwnNetwork(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.7")
	for network, want := range map[string][][]string{network(): {{"127.0.0.1:4000"}, {"192.0.2.7:4000"}}, "another": {{"192.0.2.7:4000"}}} {
		at, err := (&contact{network: network, port: 4000, addrs: []netip.Addr{addr}}).endpoints()
		if err != nil || !slices.EqualFunc(at, want, slices.Equal) {
			t.Errorf("rank 0 is on network %s: tried at %v, %v; want %v", network, at, err, want)
		}
	}
	if at, err := (&contact{network: "another", port: 4000}).endpoints(); err == nil || !strings.Contains(err.Error(), "loopback alone") {
		t.Errorf("a rank 0 on loopback of another network: tried at %v, %v", at, err)
	}
}

// Two virtual machines that began as one see networks of one name. Rank 0 of one is
// found by its addresses, whoever is at its port on the other's loopback.
func TestATicketOfATwinLeadsToRank0(t *testing.T) {
	for name, stranger := range map[string]func(net.Conn){
		"nobody": nil,
		"closes": func(c net.Conn) { c.Close() },
		"of another job": func(c net.Conn) {
			serverHandshake(&[32]byte{2}).Answer(c)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			port := answer(t, stranger)
			ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
			if err != nil {
				t.Skipf("cannot listen on 127.0.0.2: %v", err)
			}
			secret := [32]byte{1}
			twin := &contact{secret: secret, network: network(), port: port, addrs: []netip.Addr{netip.MustParseAddr("127.0.0.2")}}
			groups, err := twin.endpoints()
			if err != nil {
				t.Fatal(err)
			}
			led := make(chan error, 1)
			go func() {
				s, err := lead(ctx, 2, secret, ln, func() error { return nil }, func() {})
				if err == nil {
					t.Cleanup(func() { s.conn.Close() })
				}
				led <- err
			}()
			s, err := follow(ctx, 1, func(context.Context) ([32]byte, [][]string, error) { return secret, groups, nil })
			if err := errors.Join(err, <-led); err != nil {
				t.Fatal(err)
			}
			s.conn.Close()
		})
	}
}

// answer does the given thing with each connection to a port of loopback, or leaves it.
func answer(t *testing.T, do func(net.Conn)) (port int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if do == nil {
		ln.Close()
	}
	go func() { // until the test ends
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			do(c)
		}
	}()
	return ln.Addr().(*net.TCPAddr).Port
}

func FuzzTicket(f *testing.F) {
	f.Add((&contact{secret: [32]byte{9}, network: network(), port: 4000, addrs: ownAddrs()}).String())
	f.Add("gompi2/AAAA//1/::1")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseContact(s)
		if err != nil {
			return
		}
		b, err := parseContact(a.String())
		if err != nil || a.secret != b.secret || a.network != b.network || a.port != b.port || !slices.Equal(a.addrs, b.addrs) {
			t.Fatalf("%q came back as %q, %v", s, b, err)
		}
	})
}

func TestAHubAcceptsAgainAfterAnError(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	flaky := &accepttest.Tired{Listener: ln}
	flaky.Left.Store(2)
	h, own := newServer(2, [32]byte{1}, flaky, func() {})
	defer own.Close()
	defer h.close()
	conn, err := reach(t.Context(), &[32]byte{1}, 1, []string{ln.Addr().String()}) // at most reachTime
	if err != nil {
		t.Fatalf("after %v: %v", syscall.EMFILE, err)
	}
	conn.Close()
}

// Whoever connects and says nothing keeps no rank out, however many there are.
func TestSilentConnectionsDelayNoRank(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h, own := newServer(2, [32]byte{1}, ln, func() {})
	defer own.Close()
	defer h.close()
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

// A contact file is a regular file; a pipe in its place would be read for ever.
func TestAPipeIsNoTicket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contact")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := readContact(path)
		read <- err
	}()
	select {
	case err := <-read:
		if !errors.Is(err, errForged) || !strings.Contains(err.Error(), "named pipe") {
			t.Errorf("error %v, want that it is a named pipe: %v", err, errForged)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is read, and read")
		os.WriteFile(path, nil, 0) // has the reader end
	}
}
