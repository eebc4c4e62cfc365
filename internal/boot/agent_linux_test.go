package boot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/env"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// A fakeAgent is the other end of a rank's socket, with their shared memory.
type fakeAgent struct {
	t    *testing.T
	fd   int
	rank int // the rank's end
	seg  *seg.Segment
	in   wire.Frames
}

// newFakeAgent serves rank 1 of 3, which is local rank 0 of 2 on node 1.
func newFakeAgent(t *testing.T) *fakeAgent {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(pair[0], false); err != nil {
		t.Fatal(err)
	}
	s, err := seg.New([]world.Rank{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	a := &fakeAgent{t: t, fd: pair[0], rank: pair[1], seg: s, in: wire.Frames{Limit: wire.MaxUp}}
	t.Cleanup(func() {
		unix.Close(a.fd)
		s.Close()
	})
	return a
}

func testWelcome() *wire.Welcome {
	return &wire.Welcome{
		Rank: 1, Size: 3, LocalRank: 0, LocalSize: 2, Node: 1, JobID: "job", Secret: [32]byte{7},
		Placement: []wire.Run{{Node: 0, Count: 1}, {Node: 1, Count: 2}}, Hosts: []string{"a", "b"},
	}
}

func (a *fakeAgent) send(ms ...wire.Message) {
	a.t.Helper()
	var b []byte
	for _, m := range ms {
		b = wire.Append(b, m)
	}
	for len(b) > 0 {
		n, err := unix.Write(a.fd, b)
		if err != nil {
			a.t.Fatal(err)
		}
		b = b[n:]
	}
}

// next returns the rank's next message.
func (a *fakeAgent) next() wire.Message {
	a.t.Helper()
	for {
		m, ok, err := wire.Next(&a.in)
		if err != nil {
			a.t.Fatal(err)
		}
		if ok {
			return m
		}
		n, err := unix.Read(a.fd, a.in.ReadBuffer(false))
		if err != nil || n == 0 {
			a.t.Fatalf("read from the rank: %d bytes, %v", n, err)
		}
		a.in.Filled(n)
	}
}

// joined returns the rank's Boot.
func (a *fakeAgent) joined() *agentConn {
	a.t.Helper()
	a.send(testWelcome())
	l, err := newAgentConn(a.rank, 0, a.seg, []int{-1, -1})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { unix.Close(a.rank) })
	return l
}

func readable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(fds, 0)
	return n > 0
}

func TestWelcomeBecomesInfo(t *testing.T) {
	a := newFakeAgent(t)
	l := a.joined()
	in := l.Info()
	if in.Rank != 1 || in.Size != 3 || in.LocalRank != 0 || in.LocalSize != 2 || in.Node != 1 || in.Nodes != 2 ||
		in.JobID != "job" || in.Secret != [32]byte{7} || !reflect.DeepEqual(in.NodeOf, []int32{0, 1, 1}) {
		t.Errorf("info %+v does not say what the welcome says", in)
	}
	if in.Host(0) != "a" || in.Host(2) != "b" || in.Flight() == nil || a.seg.State(0) != seg.Joined {
		t.Errorf("hosts %s %s, recorder %p, state %v; want a b, one, joined", in.Host(0), in.Host(2), in.Flight(),
			a.seg.State(0))
	}
	l.Goodbye(false)
	if a.seg.State(0) != seg.Closed {
		t.Errorf("state %v after goodbye, want closed", a.seg.State(0))
	}
}

func TestAPlaceIsTakenOnce(t *testing.T) {
	a := newFakeAgent(t)
	a.joined()
	_, err := newAgentConn(a.rank, 0, a.seg, []int{-1, -1})
	if err == nil || !strings.Contains(err.Error(), "rank 1 of this job has been used by process") {
		t.Errorf("second join: %v, want an error that names the process", err)
	}
}

func TestWelcomeThatDoesNotFitIsRefused(t *testing.T) {
	tests := map[string]func(*wire.Welcome){
		"rank":       func(w *wire.Welcome) { w.Rank = 2 },
		"size":       func(w *wire.Welcome) { w.Size = 1 },
		"local size": func(w *wire.Welcome) { w.LocalSize = 3 },
		"placement":  func(w *wire.Welcome) { w.Placement = w.Placement[:1] },
		"too many":   func(w *wire.Welcome) { w.Placement[1].Count = 1 << 24 },
		"node":       func(w *wire.Welcome) { w.Placement[1].Node = 2 },
	}
	for name, spoil := range tests {
		a := newFakeAgent(t)
		w := testWelcome()
		spoil(w)
		a.send(w)
		if _, err := newAgentConn(a.rank, 0, a.seg, []int{-1, -1}); err == nil {
			t.Errorf("a welcome with a wrong %s was accepted", name)
		}
		unix.Close(a.rank)
	}
}

func TestAllgatherIsOneMessageEachWayAndLeavesNewsInTheSocket(t *testing.T) {
	a := newFakeAgent(t)
	l := a.joined()
	cards := [][]byte{[]byte("x"), []byte("mine"), {}}
	a.send(&wire.Cards{Data: cards}, &wire.Died{Rank: 2, Text: "killed"})
	a.seg.Bump()
	got, err := l.Allgather(t.Context(), []byte("mine"))
	if err != nil || len(got) != 3 || string(got[0]) != "x" || string(got[1]) != "mine" || len(got[2]) != 0 {
		t.Fatalf("allgather = %q, %v", got, err)
	}
	if c, ok := a.next().(*wire.Card); !ok || string(c.Data) != "mine" || readable(a.fd) {
		t.Errorf("the agent got %v, more: %v; want one card", c, readable(a.fd))
	}
	if !readable(l.FD()) || !l.Pending() {
		t.Errorf("descriptor readable: %v, pending: %v; want both, a death is there", readable(l.FD()), l.Pending())
	}
	if e := l.Events(); len(e) != 1 || e[0].Kind != Died || e[0].Rank != 2 || string(e[0].Text) != "killed" {
		t.Errorf("events %v, want the death of rank 2", e)
	}
	if l.Pending() || readable(l.FD()) {
		t.Errorf("pending %v after Events", l.Pending())
	}
	if string(got[0]) != "x" || string(got[1]) != "mine" {
		t.Errorf("after further news the cards are %q", got)
	}
}

func TestAllgatherFails(t *testing.T) {
	why := errors.New("enough")
	tests := []struct {
		name string
		act  func(a *fakeAgent, cancel context.CancelCauseFunc)
		want string
	}{
		{"when a rank died", func(a *fakeAgent, _ context.CancelCauseFunc) {
			a.send(&wire.Died{Rank: 2, Text: "was killed"})
		}, "rank 2 (host b): was killed"},
		{"when the job ends", func(a *fakeAgent, _ context.CancelCauseFunc) { a.send(&wire.Terminate{Text: "time"}) },
			"the job ends: time"},
		{"when the launcher is gone", func(a *fakeAgent, _ context.CancelCauseFunc) {
			unix.Shutdown(a.fd, unix.SHUT_RDWR)
		}, errGone.Error()},
		{"when the context ends", func(_ *fakeAgent, cancel context.CancelCauseFunc) { cancel(why) }, "enough"},
		{"when a card is missing", func(a *fakeAgent, _ context.CancelCauseFunc) {
			a.send(&wire.Cards{Data: make([][]byte, 2)})
		}, "2 cards, want 3"},
		{"when the agent is no agent", func(a *fakeAgent, _ context.CancelCauseFunc) {
			unix.Write(a.fd, []byte("\xff\xff\xff\xff\xff"))
		}, "malformed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newFakeAgent(t)
			l := a.joined()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			failed := make(chan error, 1)
			go func() {
				_, err := l.Allgather(ctx, nil)
				failed <- err
			}()
			a.next() // the rank waits now, or will at once
			tt.act(a, cancel)
			select {
			case err := <-failed:
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			case <-time.After(timeout):
				t.Fatal("it does not return")
			}
		})
	}
}

func TestLargeCardsPassThroughASmallSocket(t *testing.T) {
	a := newFakeAgent(t)
	l := a.joined()
	for _, fd := range []int{a.fd, a.rank} {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096)
	}
	big := bytes.Repeat([]byte("x"), wire.MaxCard)
	type result struct {
		cards [][]byte
		err   error
	}
	done := make(chan result, 1)
	go func() {
		cards, err := l.Allgather(context.Background(), big)
		done <- result{cards, err}
	}()
	a.next()
	a.send(&wire.Cards{Data: [][]byte{big, big, big}})
	r := <-done
	if r.err != nil || len(r.cards) != 3 || !bytes.Equal(r.cards[2], big) {
		t.Errorf("%d cards, %v", len(r.cards), r.err)
	}
	if _, err := l.Allgather(t.Context(), append(big, 'x')); err == nil {
		t.Error("a card beyond the limit was accepted")
	}
}

func TestRanksAgreeThroughTheAgent(t *testing.T) {
	a := newFakeAgent(t)
	vote := &wire.Vote{Comm: 5, Seq: 1, Kind: wire.Agree, Flags: 6, Members: []wire.Span{{First: 0, Count: 3}},
		Part: []byte("part")}
	l := a.joined()
	if err := l.Vote(&wire.Vote{Kind: wire.Restore}); !errors.Is(err, errNoVoting) {
		t.Errorf("a Restore without -recover: %v, want %v", err, errNoVoting)
	}
	if err := l.Vote(vote); err != nil {
		t.Fatal(err)
	}
	if m := a.next(); !reflect.DeepEqual(m, vote) {
		t.Errorf("the agent gets %+v, want %+v", m, vote)
	}
	outcome := &wire.Outcome{Comm: 5, Seq: 1, Flags: 2, Living: []wire.Voter{{Rank: 1, Part: []byte("part")}},
		Dead: []world.Rank{0, 2}}
	a.send(outcome)
	a.seg.Bump()
	want := []Event{{Kind: Agreed, Rank: -1, Comm: 5, Outcome: outcome}}
	if got := l.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("events %+v, want %+v", got, want)
	}
}

func TestNewsComesInOrderAndGoneOnce(t *testing.T) {
	a := newFakeAgent(t)
	l := a.joined()
	a.send(&wire.Left{Rank: 3}, &wire.Revoked{Rank: 2, Comm: 1 << 40, Cause: []byte("why")},
		&wire.Terminate{Text: "time"})
	a.seg.Bump()
	want := []Event{{Kind: Left, Rank: 3}, {Kind: Revoked, Rank: 2, Comm: 1 << 40, Text: []byte("why")},
		{Kind: Terminate, Rank: -1, Text: []byte("time")}}
	if got := l.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	unix.Shutdown(a.fd, unix.SHUT_RDWR)
	if got := l.Events(); len(got) != 1 || got[0].Kind != Gone {
		t.Errorf("events %v, want gone", got)
	}
	if got := l.Events(); len(got) != 0 {
		t.Errorf("events %v after gone, want none", got)
	}
	if err := l.Abort(1, "x"); err == nil {
		t.Error("abort succeeded without a launcher")
	}
}

func TestRevokeInquireAndAbortReachTheAgent(t *testing.T) {
	a := newFakeAgent(t)
	l := a.joined()
	if err := l.Revoke(5, []byte("cause")); err != nil {
		t.Fatal(err)
	}
	if err := l.Inquire(8); err != nil {
		t.Fatal(err)
	}
	if err := l.Abort(3, strings.Repeat("x", wire.MaxText+9)); err != nil {
		t.Fatal(err)
	}
	if m, ok := a.next().(*wire.Revoke); !ok || m.Comm != 5 || string(m.Cause) != "cause" {
		t.Errorf("the agent got %+v, want the revocation", m)
	}
	if m, ok := a.next().(*wire.Inquire); !ok || m.Rank != 8 {
		t.Errorf("the agent got %+v, want the inquiry", m)
	}
	if m, ok := a.next().(*wire.Abort); !ok || m.Code != 3 || len(m.Reason) != wire.MaxText {
		t.Errorf("the agent got %+v, want the abort with a reason cut to the limit", m)
	}
	if err := l.Revoke(5, make([]byte, wire.MaxText+1)); err == nil {
		t.Error("a cause beyond the limit was accepted")
	}
}

func TestOpenFollowsTheEnvironment(t *testing.T) {
	for _, v := range env.Table() {
		t.Setenv(v.Name, "")
	}
	b, err := Open(t.Context())
	if err != nil || b.Info().Size != 1 {
		t.Fatalf("without a launcher: %v, %v; want a job of one", b, err)
	}
	t.Setenv("PMI_RANK", "0")
	t.Setenv("PMI_SIZE", "4")
	if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), "rank 0 of 1, 4 times") {
		t.Errorf("under another launcher: %v, want an error", err)
	}
	t.Setenv(env.Boot, "alone")
	if b, err := Open(t.Context()); err != nil || b.Info().Size != 1 {
		t.Errorf("told to be alone: %v", err)
	}
	t.Setenv(env.Boot, "anyhow")
	if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), "anyhow") {
		t.Errorf("with a wrong %s: %v", env.Boot, err)
	}
}

// TestOpenTakesOverWhatItInherits makes descriptors as an agent does, one by
// one unusable, with an address on which no process listens.
func TestOpenTakesOverWhatItInherits(t *testing.T) {
	for _, v := range env.Table() {
		t.Setenv(v.Name, "")
	}
	made, err := unix.Eventfd(0, unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(made)
	const bell, second = 900, 901 // doorbells follow each other; no test opens so many files
	for _, fd := range []int{bell, second} {
		if err := unix.Dup3(made, fd, 0); err != nil {
			t.Fatal(err)
		}
	}
	a := newFakeAgent(t)
	set := func(boot, segment, bell int) {
		os.Setenv(env.BootFD, itoa(boot))
		os.Setenv(env.SegFD, itoa(segment))
		os.Setenv(env.BellFD, itoa(bell))
		os.Setenv(env.BootAddr, "@gompi-test-nobody")
		os.Setenv(env.LocalRank, "0")
		os.Setenv(env.LocalSize, "2")
	}
	a.send(testWelcome())
	inet, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inet)
	for name, spoiled := range map[string][3]int{
		"boot socket": {bell, a.seg.FD(), bell}, "socket's domain": {inet, a.seg.FD(), bell},
		"segment": {a.rank, bell, bell}, "doorbells": {a.rank, a.seg.FD(), 1 << 19},
	} {
		set(spoiled[0], spoiled[1], spoiled[2])
		if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), "@gompi-test-nobody") {
			t.Errorf("with a wrong %s: %v, want an error about the agent's socket", name, err)
		}
	}
	set(a.rank, a.seg.FD(), bell)
	b, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if in := b.Info(); in.Rank != 1 || !reflect.DeepEqual(in.Bells, []int{bell, second}) ||
		in.Segment.State(0) != seg.Joined {
		t.Errorf("info %+v, want rank 1 with doorbells %d and %d", in, bell, second)
	}
	for _, fd := range []int{a.rank, a.seg.FD(), bell, second} {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is handed on to children", fd)
		}
	}
	for _, name := range []string{env.BootFD, env.BootAddr, env.SegFD, env.BellFD} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s=%s is handed on to children", name, v)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
