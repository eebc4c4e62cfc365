package lease

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/shmsync"
	"gompi/internal/world"
)

func lender(t *testing.T) *Lease {
	t.Helper()
	l, err := New(new(sync.Mutex))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(l.pinner.Unpin)
	return l
}

// What C does while it has the lease and what Go does after a recall never meet.
func TestRecallWaitsForWhoIsInside(t *testing.T) {
	l := lender(t)
	r := l.Record()
	var inside, ops atomic.Int32
	var ends sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		ends.Add(1)
		go func() { // as begin and leave of short.c
			defer ends.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if r.wanted.Load() != 0 || !r.word.CompareAndSwap(lent, busy) {
					runtime.Gosched()
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				ops.Add(1)
				inside.Add(-1)
				r.word.Store(lent)
			}
		}()
	}
	for n := 0; n < 2000 || ops.Load() < 1000; n++ {
		l.Recall()
		if inside.Add(1) != 1 {
			t.Error("one is inside after Recall")
		}
		inside.Add(-1)
		l.Begin()
		l.rec.word.Store(lent)
		runtime.Gosched()
	}
	close(stop)
	ends.Wait()
}

func TestOnlyWhatCarriesTheStampIsLent(t *testing.T) {
	l := lender(t)
	r := l.Record()
	l.open(3, 99, 2)
	r.routes[3][1] = 8
	l.Begin()
	l.lendChannel(3, 0)
	if r.channels[3].stamp != r.stamp || r.routes[3][1] != 8 {
		t.Errorf("channel %+v, route %d: want stamp %d, route 8", r.channels[3], r.routes[3][1], r.stamp)
	}
	l.Begin()
	if r.channels[3].stamp == r.stamp {
		t.Error("a channel is lent in the next lease, too")
	}
	if l.open(3, 99, 2); r.routes[3][1] != 8 {
		t.Errorf("the route of the same communicator is %d: want 8", r.routes[3][1])
	}
	if l.open(3, 100, 2); r.routes[3][1] != 0 {
		t.Errorf("the route of another communicator is %d: want none", r.routes[3][1])
	}
}

func TestALeaseExpires(t *testing.T) {
	l := lender(t)
	l.Begin()
	if l.Begin() {
		t.Error("expired at once")
	}
	l.Record().left = 0 // as C leaves it
	if !l.Begin() || l.Begin() {
		t.Error("a lease of which nothing is left has not expired once")
	}
}

// Receives pass to C and back in their order, and their places are free when they are over.
func TestReceivesPassInOrder(t *testing.T) {
	l := lender(t)
	var places []int
	for i := range 5 {
		p, ok := l.Take(Receive{Slot: 2, Source: i, Tag: 10 + i, Bytes: 8 * i, Buf: uintptr(i)})
		if !ok {
			t.Fatalf("no place for receive %d", i)
		}
		places = append(places, p)
	}
	places[1], places[3] = places[3], places[1]
	if l.GiveBack(func() []int { return places }); !l.Holds() {
		t.Error("C holds nothing")
	}
	l.rec.held[places[2]].state.Store(arrived) // as C leaves it: not posted any more
	l.rec.held[places[1]].next, l.rec.held[places[3]].prev = uint32(places[3]+1), uint32(places[1]+1)
	var got []Receive
	l.TakeOver(func(r Receive) { got = append(got, r) })
	want := []int{0, 3, 1, 4, 2} // what has arrived last
	for i, r := range got {
		if w := want[i]; r.Source != w || r.Tag != 10+w || r.Bytes != 8*w || r.Buf != uintptr(w) || r.Slot != 2 ||
			r.Arrived != (w == 2) {
			t.Errorf("receive %d that was taken over is %+v: want that from %d", i, r, w)
		}
	}
	if len(got) != len(want) || l.Holds() || l.passing {
		t.Errorf("%d were taken over, and C holds some: %v, and some pass: %v; want 5, false, false", len(got),
			l.Holds(), l.passing)
	}
	l.GiveBack(func() []int {
		if !l.Holds() || !l.passing || l.claim() {
			t.Error("while receives pass, calls do not wait, or something is lent")
		}
		return nil
	})
	if l.Holds() || l.passing {
		t.Error("C is given nothing, and holds receives")
	}
	for _, p := range places {
		l.Free(p)
	}
	for i := range Held {
		if _, ok := l.Take(Receive{}); !ok {
			t.Fatalf("place %d of %d is not free", i, Held)
		}
	}
	if _, ok := l.Take(Receive{}); ok {
		t.Error("a receive has a place where all are taken")
	}
}

// What C has used is lent again when Go has taken it back; what it has not is lent when C misses
// it.
func TestWhatWasUsedIsLentAgain(t *testing.T) {
	l := lender(t)
	for _, used := range []bool{true, false} {
		l.Begin()
		l.rec.word.Store(lent)
		if used {
			l.Record().left-- // as C leaves it
		}
		l.Recall()
		if _, _, _, again := l.Missed(); again != used {
			t.Errorf("behind a lease that was used (%v) another is wanted: %v", used, again)
		}
		if _, _, _, again := l.Missed(); again {
			t.Error("another lease is wanted twice")
		}
	}
	l.Record().missed.Store(missedTest)
	if _, _, tests, ok := l.Missed(); !ok || !tests {
		t.Error("that C has tested without a lease is not reported")
	}
}

// A Team comes back as C leaves it. What C has used is to be lent again, what it has not is not.
func TestATeamComesBackAsCLeavesIt(t *testing.T) {
	l := lender(t)
	team := l.Team(3, &Loan{Me: 1, Blocks: make([]unsafe.Pointer, 2), Locals: make([]world.LocalRank, 2),
		Next: unsafe.Pointer(new(uint64))})
	if _, ok := team.TakeBack(); ok {
		t.Error("a Team comes back that was not lent")
	}
	for _, used := range []uint64{0, 5} {
		before := Cursors{Cursors: shmsync.Cursors{Step: 70, Free: 6}, Seq: 70, Digest: 9}
		team.Lend(before, Most{})
		want := before
		want.Step += used
		team.word.Store(busy) // as C does
		go func() {
			team.Step = want.Step
			team.word.Store(lent)
		}()
		if c, ok := team.TakeBack(); !ok || c != want {
			t.Errorf("%+v, %v comes back, want %+v", c, ok, want)
		}
		if slot, ok := l.MissedTeam(); ok != (used > 0) || ok && slot != 3 {
			t.Errorf("after %d steps in C it is to be lent again: %v, as %d", used, ok, slot)
		}
	}
	team.Lend(Cursors{}, Most{})
	team.word.Store(none) // as a handler does that has interrupted C for good
	if _, ok := team.TakeBack(); !ok {
		t.Error("a Team does not come back behind such a handler")
	}
	if _, ok := team.TakeBack(); ok {
		t.Error("a Team comes back twice")
	}
	team.Lend(Cursors{Cursors: shmsync.Cursors{Step: 1}}, Most{})
	if team.Lend(Cursors{Cursors: shmsync.Cursors{Step: 2}}, Most{}); team.Step != 1 {
		t.Error("a Team is lent twice")
	}
}

// C finds a window by its slot until that is free, and Go polls once in so many calls.
func TestCFindsAWindowUntilItIsFreed(t *testing.T) {
	l := lender(t)
	var broken atomic.Bool
	parts := make([]Part, 3)
	w := NewWindow(parts, &broken)
	l.Window(7, w)
	if got := l.rec.windows[7].Load(); got != uintptr(unsafe.Pointer(w)) {
		t.Errorf("slot 7 is %#x, want %p", got, w)
	}
	if w.Parts()[2].Size = 5; parts[2].Size != 5 {
		t.Error("the parts are copies")
	}
	l.FreeWindow(7, w)
	if l.rec.windows[7].Load() != 0 {
		t.Error("slot 7 stands for a window that was freed")
	}
	polls := 0
	for range 2 * (polled + 1) {
		if w.Polls() {
			polls++
		}
	}
	if polls != 2 {
		t.Errorf("%d of %d calls poll, want 2", polls, 2*(polled+1))
	}
}

// Writers are alone, readers are not, and each begins in its turn.
func TestTheLockOfAPartServesInOrder(t *testing.T) {
	var c Control
	first, second, third := c.Arrive(), c.Arrive(), c.Arrive() // read, read, write
	c.Begin(ForReading)
	if !c.MayBegin(second, ForReading) || c.MayBegin(third, ForWriting) {
		t.Errorf("behind a reader a reader may begin: %v, a writer: %v", c.MayBegin(second, ForReading),
			c.MayBegin(third, ForWriting))
	}
	c.Begin(ForReading)
	late := c.Arrive()
	c.End(ForReading)
	if c.MayBegin(third, ForWriting) || c.MayBegin(late, ForReading) {
		t.Error("a writer begins beside a reader, or a reader before a writer that came first")
	}
	if c.End(ForReading); !c.MayBegin(third, ForWriting) || c.MayBegin(late, ForReading) {
		t.Error("the writer's turn has not come, or a reader's has, too")
	}
	if c.End(ForWriting); !c.MayBegin(late, ForReading) || first != 0 {
		t.Error("the turn of a reader behind a writer has not come")
	}
}

// No two receives that threads post at a time have one place.
func TestPlacesAreTakenOnce(t *testing.T) {
	l := lender(t)
	for round := range 200 {
		var taken [Held]atomic.Int32
		var ends sync.WaitGroup
		for range 4 {
			ends.Add(1)
			go func() {
				defer ends.Done()
				for range Held / 8 {
					if i, ok := l.Take(Receive{}); ok {
						taken[i].Add(1)
					}
				}
			}()
		}
		ends.Wait()
		for i := range taken {
			if n := taken[i].Load(); n > 1 {
				t.Fatalf("round %d: place %d is of %d receives", round, i, n)
			} else if n == 1 {
				l.Free(i)
			}
		}
	}
}

// A collective that C does has a place in Most.
func TestMostHasAllKindsThatCDoes(t *testing.T) {
	for _, k := range calls.Collectives {
		if k.InC() && int(k) >= len(Most{}) {
			t.Errorf("C does %v: want Most to have %d kinds", k, k+1)
		}
	}
}
