package liveness

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"gompi/internal/core/peers"
	"gompi/internal/core/progress"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// frames is a transport that records the frames it is given.
type frames struct {
	transporttest.Stub
	transporttest.Log
}

func (w *frames) Send(to world.Rank, h *transport.Header, _ mem.Buffer, _ uint64) bool {
	w.Note("%v to %d", h.Kind, to)
	return true
}

// operations wait for some members, and record what they are notified of.
type operations struct {
	named []int
	any   bool
	log   []string
}

func (o *operations) Fail(err error) { o.log = append(o.log, "fail") }
func (o *operations) Depart(p *peers.Peer, all bool) {
	o.log = append(o.log, fmt.Sprint("depart ", p.Rank, all))
}
func (o *operations) Awaited(to []int) ([]int, bool)   { return append(to, o.named...), o.any }
func (o *operations) Unanswered(func(member int) bool) {}
func (o *operations) Forget(uint64)                    {}
func (o *operations) Ended(world.Rank)                 {}

func newRanks(t *testing.T) (*Ranks, *frames, *operations) {
	t.Helper()
	w, o, table := new(frames), new(operations), new(peers.Table)
	table.Init(4)
	table.Use(w)
	k := new(Ranks)
	k.Init(Config{
		Size: 4, Host: func(world.Rank) string { return "host" }, Peers: table, Messages: o,
		Progress: new(progress.Engine),
		Log:      slog.New(slog.DiscardHandler),
	})
	return k, w, o
}

// Members that close a communicator are out of it one by one. When all others have, this rank is
// alone. A frame of a rank that is no member counts for nothing.
func TestMembersLeave(t *testing.T) {
	k, _, o := newRanks(t)
	var c Comm
	k.Open(&c, o, 7, []world.Rank{2, 0, 3}, nil)
	leave := func(rank world.Rank) { k.LeftComm(k.cfg.Peers.Peer(rank), 7) }
	if leave(1); len(o.log) > 0 {
		t.Errorf("rank 1 is no member, but %v", o.log)
	}
	if leave(3); !c.Left(2) || c.Left(0) || c.Alone() || !errors.Is(c.Gone(2), ErrLeft) {
		t.Errorf("one has left: %v, %v, alone %v, %v", c.Left(2), c.Left(0), c.Alone(), c.Gone(2))
	}
	if leave(2); !c.Alone() || c.Err() != nil {
		t.Errorf("all have left: alone %v, %v", c.Alone(), c.Err())
	}
	if want := []string{"depart 3 false", "depart 2 true"}; !slices.Equal(o.log, want) {
		t.Errorf("operations are notified of %q, want %q", o.log, want)
	}
}

// A rank asks the members that it waits for, each once, and one that has not left where it waits
// for any.
func TestAWaitAsksItsMembers(t *testing.T) {
	for name, test := range map[string]struct {
		named []int
		any   bool
		left  []world.Rank
		want  string
	}{
		"none":                     {nil, false, nil, ""},
		"two of them":              {[]int{1, 3}, false, nil, "await to 1; await to 3"},
		"itself":                   {[]int{0}, false, nil, ""},
		"one that has left":        {[]int{1, 2}, false, []world.Rank{1}, "await to 2"},
		"any":                      {nil, true, nil, "await to 1"},
		"any, and one has left":    {nil, true, []world.Rank{1}, "await to 2; await to 3"},
		"any, and others have all": {nil, true, []world.Rank{1, 2, 3}, ""},
	} {
		k, w, o := newRanks(t)
		var c Comm
		k.Open(&c, o, 7, nil, nil)
		for _, rank := range test.left {
			k.LeftComm(k.cfg.Peers.Peer(rank), 7)
		}
		o.named, o.any = test.named, test.any
		k.Stalled()
		if got := w.Taken(); got != test.want {
			t.Errorf("%s: sends %q, want %q", name, got, test.want)
		}
		k.Stalled()
		if got := w.Taken(); got != "" {
			t.Errorf("%s: asks once more: %q", name, got)
		}
	}
}

// Only a frame whose sender waits is answered, if the communicator is closed or revoked here.
func TestFramesAreAnsweredAfterTheEnd(t *testing.T) {
	waiting := []transport.Kind{transport.RTS, transport.Coll, transport.Ready, transport.Call, transport.Await}
	for kind := transport.Eager; kind <= transport.Goodbye; kind++ {
		for id, answer := range map[uint64]string{6: "revoke to 1", 7: "", 8: "left to 1", 9: "revoke to 1"} {
			k, w, o := newRanks(t)
			k.Open(new(Comm), o, 7, nil, nil)
			revoked := &Comm{reason: []byte("why")}
			k.Open(revoked, o, 6, nil, nil)
			k.past.close(8, nil)
			k.past.close(9, Reason{Rank: 2, Cause: "why"}.Encode())
			if !slices.Contains(waiting, kind) {
				answer = ""
			}
			k.AnswerEnd(k.cfg.Peers.Peer(1), &transport.Header{Kind: kind, Comm: id})
			if got := w.Taken(); got != answer {
				t.Errorf("%v for communicator %d: answered by %q, want %q", kind, id, got, answer)
			}
		}
	}
}

// A communicator breaks once, for its first reason, of which the other members are notified.
func TestACommunicatorBreaksOnce(t *testing.T) {
	k, w, o := newRanks(t)
	var c Comm
	k.Open(&c, o, 7, nil, nil)
	for rank := range world.Rank(4) {
		k.cfg.Peers.Peer(rank) // they have met
	}
	c.BreakUp(Reason{Rank: 2, Cause: "first"})
	if got := w.Taken(); !strings.Contains(got, "revoke to 1; revoke to 2; revoke to 3") {
		t.Errorf("sends %q, want a revocation to each", got)
	}
	c.BreakUp(Reason{Rank: 3, Cause: "second"})
	if got := w.Taken(); got != "" || !slices.Equal(o.log, []string{"fail"}) {
		t.Errorf("the second time: sends %q, operations %q", got, o.log)
	}
	if err := c.Err(); !errors.Is(err, ErrRevoked) || !strings.Contains(err.Error(), "rank 2 (host host) first") {
		t.Errorf("broken: %v", err)
	}
}
