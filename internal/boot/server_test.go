package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/boot/rank0"
	"gompi/internal/boot/wire"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// timeout bounds every wait for a certain event: a busy machine may take long.
const timeout = time.Minute

// meeting opens n ranks by a shared folder, each in a goroutine, and returns their results.
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
	// The remains of a job of the same name lead nowhere.
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
		if in.Rank != world.Rank(r) || in.Size != 5 || in.LocalRank != world.LocalRank(r) || in.LocalSize != 5 ||
			in.Nodes != 1 || in.JobID != ranks[0].info.JobID || in.Secret != ranks[0].info.Secret {
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

func TestNewsReachesRanksWithoutAnAgent(t *testing.T) {
	ranks := meet(t, 4)
	if err := ranks[2].Revoke(7, []byte("why")); err != nil {
		t.Fatal(err)
	}
	for _, s := range ranks {
		if e := next(t, s); len(e) != 1 || e[0].Kind != Revoked || e[0].Rank != 2 || e[0].Comm != 7 ||
			string(e[0].Text) != "why" {
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
		if e := next(t, s); len(e) != 1 || e[0].Kind != Terminate ||
			string(e[0].Text) != "rank 1 aborted the job with status 9: no disk" {
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
func TestARankThatLeftIsReportedWhenAnotherInquires(t *testing.T) {
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

func TestTheEndOfRankZeroIsReportedAsSuch(t *testing.T) {
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
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	dir := t.TempDir()
	_, errs := meeting(ctx, dir, 4, 2)
	want := regexp.MustCompile(`1 of 4 ranks have not come within \d+s, the first is rank 2`)
	for _, r := range []int{0, 1, 3} {
		if errs[r] == nil || !want.MatchString(errs[r].Error()) {
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

func TestTheEndOfTheContextIsWhyARankDoesNotJoin(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	own, silent := net.Pipe()
	defer silent.Close()
	go func() {
		silent.Read(make([]byte, wire.MaxUp)) // the rank has said where it is
		cancel(why)
	}()
	if _, err := newClient(ctx, own, [32]byte{}); err != why {
		t.Errorf("error %v, want %v", err, why)
	}
}

// Two virtual machines that began as one see networks of one name. Rank 0 of one is
// found by its addresses, whoever is at its port on the other's loopback.
func TestAContactOfATwinLeadsToRank0(t *testing.T) {
	for name, outsider := range map[string]func(net.Conn){
		"nobody": nil,
		"closes": func(c net.Conn) { c.Close() },
		"of another job": func(c net.Conn) {
			rank0.Handshake(&[32]byte{2}).Answer(c)
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			port := answer(t, outsider)
			ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
			if err != nil {
				t.Skipf("cannot listen on 127.0.0.2: %v", err)
			}
			secret := [32]byte{1}
			twin := rank0.ContactOf(ln, secret, true)
			twin.Addrs = []netip.Addr{netip.MustParseAddr("127.0.0.2")}
			groups, err := twin.Endpoints()
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
