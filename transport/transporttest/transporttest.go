// Package transporttest is the contract of transport.Transport as tests: one suite for every
// transport, and a wrapper that makes any transport fail at a chosen frame.
package transporttest

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"gompi/internal/world"
	"gompi/transport"
)

// An End is one rank's side of a Net.
type End struct {
	transport.Transport
	Parker transport.Parker
}

// A Net is a set of ranks that can reach each other through the transport under test.
type Net struct {
	Ends []End
	// Kill ends a rank as the death of its process would. No other call to that End is made at the
	// same time or later.
	Kill func(rank world.Rank)
	// Heap returns memory of a rank that its peers can reach, as much for each rank; nil unless
	// Transports are Getters.
	Heap func(rank world.Rank) []byte
	// Done releases resources that outlive the transports, which are closed or killed by then. It
	// may be nil.
	Done func()
}

// Open makes a Net of len(sinks) ranks, where rank i delivers to sinks[i].
type Open func(t *testing.T, sinks []transport.Sink) *Net

// Run tests that the transport of open keeps the contract.
func Run(t *testing.T, open Open) {
	rules := rulesOfAll
	opened := false
	t.Run("Opens", func(t *testing.T) {
		if newNet(t, open, 2).Ends[0].Capabilities().Getter != nil {
			rules = slices.Concat(rules, rulesOfGetters)
		}
		opened = true
	})
	if !opened { // skipped or failed
		return
	}
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			n := newNet(t, open, c.size)
			c.test(t, n)
		})
	}
	t.Run("SimultaneousFirstContact", func(t *testing.T) {
		rounds := 30
		if testing.Short() {
			rounds = 10
		}
		for range rounds {
			bothWays(t, newNet(t, open, 2), []int{5, 100000, 0})
		}
	})
}

// A rule is a duty of transports, tested with a number of ranks.
type rule struct {
	name string
	size int
	test func(t *testing.T, n *net)
}

var rulesOfAll = []rule{
	{"HeaderArrivesWhole", 2, headerArrivesWhole},
	{"FramesArriveInOrder", 2, framesArriveInOrder},
	{"AnySize", 2, anySize},
	{"WindowsSmallerThanThePayload", 2, smallWindows},
	{"PayloadIsDroppedWithoutAWindow", 2, droppedPayload},
	{"WholeFramesCanBeTaken", 2, takenWhole},
	{"ManyFramesBothWays", 2, manyBothWays},
	{"EverybodyToEverybody", 8, allPairs},
	{"SinkMaySend", 2, sinkMaySend},
	{"BufferMayBeReusedAfterSendSaysSo", 2, bufferReuse},
	{"SentComesOnce", 2, sentOnce},
	{"ForgottenBufferIsLetGo", 2, forgottenSend},
	{"ForgottenWindowIsLetGo", 2, forgottenWindow},
	{"SleepersAreWoken", 2, sleepersAreWoken},
	{"GoodbyeComesAfterTheData", 2, goodbyeAfterData},
	{"AllMayCloseAtOnce", 4, allClose},
	{"NothingArrivesDuringClose", 2, nothingArrivesInClose},
	{"ForcedCloseReturnsAtOnce", 2, forcedClose},
	{"DeathIsACut", 4, deathIsACut},
	{"DeathGivesBuffersBack", 2, deathGivesBuffersBack},
	{"DeadBeforeFirstContact", 2, deadBeforeContact},
	{"MessagesAllocateNothing", 2, noAllocation},
}

// rulesOfGetters are for transports that read and write their peers' memory.
var rulesOfGetters = []rule{
	{"HeapsAreReadAndWritten", 2, heapsAreReached},
	{"CopiesBetweenHeapsNeedNoPeer", 2, copiesNeedNoPeer},
	{"PlacesThatMeanNothing", 2, placesThatMeanNothing},
	{"RecalledMemoryIsReadInVain", 2, recalledMemory},
	{"ForgottenCopiesEnd", 2, forgottenCopies},
	{"CopiesEndWithTheTransport", 2, copiesEndInClose},
}

// A net is a Net under test.
type net struct {
	*Net
	ranks []*rank
	dead  map[world.Rank]bool
}

// newNet opens a Net. At the end of the test it closes the Net and checks for remaining goroutines.
func newNet(t *testing.T, open Open, size int) *net {
	t.Helper()
	before := runtime.NumGoroutine()
	n := &net{dead: make(map[world.Rank]bool)}
	sinks := make([]transport.Sink, size)
	for i := range size {
		n.ranks = append(n.ranks, newRank(world.Rank(i)))
		sinks[i] = n.ranks[i]
	}
	n.Net = open(t, sinks)
	for i, r := range n.ranks {
		r.End = n.Ends[i]
	}
	t.Cleanup(func() {
		n.shut(t)
		noGoroutinesLeft(t, before)
	})
	return n
}

// size returns the number of ranks.
func (n *net) size() world.Rank { return world.Rank(len(n.ranks)) }

func (n *net) kill(rank world.Rank) {
	n.dead[rank] = true
	n.Kill(rank)
}

func (n *net) shut(t *testing.T) {
	for _, r := range n.ranks {
		if !n.dead[r.id] && !r.Close(true) {
			t.Errorf("rank %d: a forced Close did not end", r.id)
		}
		if !n.dead[r.id] && len(r.due) > 0 {
			t.Errorf("rank %d: closed, but %d buffers have not been given back", r.id, len(r.due))
		}
		if r.broken != nil && !t.Failed() {
			t.Errorf("rank %d: %v", r.id, r.broken)
		}
	}
	if n.Done != nil {
		n.Done()
	}
}

func noGoroutinesLeft(t *testing.T, before int) {
	for end := time.Now().Add(timeout); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			return
		}
	}
}
