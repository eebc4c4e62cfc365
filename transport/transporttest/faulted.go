package transporttest

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"gompi/internal/world"
	"gompi/transport"
)

// RunFaulty tests the transport that open makes behind Faulty: delayed frames keep the contract,
// and cuts, truncations and stalls have their effect and no other.
func RunFaulty(t *testing.T, open Open) {
	t.Run("DelayKeepsTheContract", func(t *testing.T) { delayKeepsTheContract(t, open) })
	t.Run("CutComesBeforeTheFrame", func(t *testing.T) { cutComesBeforeTheFrame(t, open) })
	t.Run("TruncateGivesHalfThePayload", func(t *testing.T) { truncateGivesHalf(t, open) })
	t.Run("StallIsSilent", func(t *testing.T) { stallIsSilent(t, open) })
}

// faulted opens the Net of open, with the faults of decide at each rank.
func faulted(open Open, decide func(rank world.Rank, ev Event) Fault) Open {
	return func(t *testing.T, sinks []transport.Sink) *Net {
		shells, between := make([]*faulty, len(sinks)), make([]transport.Sink, len(sinks))
		for i, s := range sinks {
			shells[i] = newFaulty(s, func(ev Event) Fault { return decide(world.Rank(i), ev) })
			between[i] = shells[i]
		}
		n := open(t, between)
		for i, f := range shells {
			f.Transport, n.Ends[i].Transport = n.Ends[i].Transport, f
		}
		return n
	}
}

// at returns faults for one frame, counted from 0, in one direction at one rank.
func at(rank world.Rank, out bool, n int, fault Fault) func(world.Rank, Event) Fault {
	return func(r world.Rank, ev Event) Fault {
		if r == rank && ev.Out == out && ev.N == n {
			return fault
		}
		return Fault{}
	}
}

func delayKeepsTheContract(t *testing.T, open Open) {
	open = faulted(open, func(_ world.Rank, ev Event) Fault {
		if !ev.Out {
			return Fault{}
		}
		return Fault{Delay: ev.N % 4}
	})
	for _, c := range []struct {
		name string
		size int
		test func(*testing.T, *net)
	}{
		{"FramesArriveInOrder", 2, framesArriveInOrder},
		{"WindowsSmallerThanThePayload", 2, smallWindows},
		{"PayloadIsDroppedWithoutAWindow", 2, droppedPayload},
		{"SinkMaySend", 2, sinkMaySend},
		{"BufferMayBeReusedAfterSendSaysSo", 2, bufferReuse},
		{"SentComesOnce", 2, sentOnce},
		{"ForgottenBufferIsLetGo", 2, forgottenSend},
		{"SleepersAreWoken", 2, sleepersAreWoken},
		{"GoodbyeComesAfterTheData", 2, goodbyeAfterData},
		{"AllMayCloseAtOnce", 4, allClose},
		{"DeathGivesBuffersBack", 2, deathGivesBuffersBack},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newNet(t, open, c.size)) })
	}
}

func cutComesBeforeTheFrame(t *testing.T, open Open) {
	for _, out := range []bool{true, false} {
		n := newNet(t, faulted(open, at(1, out, 2, Fault{Cut: true})), 2)
		from, to := n.ranks[0], n.ranks[1]
		if out {
			from, to = to, from
		}
		for i := range 4 {
			from.post(to.id, i, 100)
		}
		cut := n.ranks[1]
		n.poll(t, "the cut, and what came before it", func() bool { return cut.lost[0] != nil && len(to.got) >= 2 })
		if err := cut.lost[0]; !errors.Is(err, transport.ErrCut) {
			t.Errorf("lost with %v, want %v", err, transport.ErrCut)
		}
		for range 10 {
			n.pollAll()
		}
		if err := to.check(from.id, []int{100, 100}); err != nil {
			t.Errorf("leaving %v: %v", out, err)
		}
	}
}

func truncateGivesHalf(t *testing.T, open Open) {
	n := newNet(t, faulted(open, at(1, false, 0, Fault{Truncate: true})), 2)
	from, to := n.ranks[0], n.ranks[1]
	to.window = func(*transport.Header) int { return 300 }
	from.post(1, 0, 1001)
	n.poll(t, "the cut", func() bool { return to.lost[0] != nil })
	if len(to.got) != 0 || len(to.arriving) != 1 {
		t.Fatalf("%d messages complete, %d begun; want 0 and 1", len(to.got), len(to.arriving))
	}
	for _, a := range to.arriving {
		want := pattern(0, 0, 1001)[:500]
		if got := append(a.payload, a.scratch[:200]...); !bytes.Equal(got, want) {
			t.Errorf("half the payload is not what was sent: %d bytes stored", len(a.payload))
		}
	}
}

func stallIsSilent(t *testing.T, open Open) {
	n := newNet(t, faulted(open, at(0, true, 1, Fault{Stall: true})), 2)
	for i := range 3 {
		n.ranks[0].post(1, i, 100)
		n.ranks[1].post(0, i, 100)
	}
	n.poll(t, "what left before the stall", func() bool { return len(n.ranks[1].got) > 0 })
	for range 20 {
		n.pollAll()
	}
	n.kill(1)
	for range 20 {
		n.pollAll()
	}
	if len(n.ranks[1].got) != 1 || len(n.ranks[0].got) != 0 || len(n.ranks[0].lost) != 0 {
		t.Errorf("%d frames came through and %d back, lost %v; want 1, 0 and nothing",
			len(n.ranks[1].got), len(n.ranks[0].got), n.ranks[0].lost)
	}
}

// poll polls all ranks in turn until done reports true.
func (n *net) poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("polled in vain for %s", what)
		}
		n.pollAll()
	}
}

func (n *net) pollAll() {
	for _, r := range n.ranks {
		if !n.dead[r.id] {
			r.Poll(-1)
		}
	}
}
