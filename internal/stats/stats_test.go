package stats

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// memory returns one for a rank of a job of so many.
func memory(ranks int, trace bool) *Memory {
	n := Size(1, ranks, trace)
	words := make([]uint64, (n+7)/8)
	return Format(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n), []int{0}, ranks, trace)
}

// call stands for a function of gompi, between the program and Begin.
//
//go:noinline
func call(r *Rank, op Op, bytes int) {
	var s Span
	r.Begin(&s, op, bytes, nil)
	s.End()
}

//go:noinline
func program(r *Rank, op Op) { call(r, op, 8) }

const hour = int64(time.Hour)

// lend adds to the time of the sites in use: with an hour less their calls are short, whatever
// holds a test up.
func lend(r *Rank, time int64) {
	for i := range r.sites {
		if s := &r.sites[i]; s.key.Load() != 0 {
			atomic.AddInt64(&s.Time, time)
		}
	}
}

func TestSitesAreToldApart(t *testing.T) {
	m := memory(1, false)
	places := 0
	r := m.Rank(0, func() string { places++; return string(rune('a' + places - 1)) })
	for i := range 3 * warmUp {
		program(r, Send)
		if i == 0 {
			lend(r, -hour)
		}
	}
	lend(r, hour)
	for range 5 {
		program(r, Send)
		program(r, Recv)
	}
	f, _ := m.Read(0, 0)
	if len(f.Sites) != 3 || places != 3 {
		t.Fatalf("%+v: want three sites", f.Sites)
	}
	got := map[int64]int{}
	for _, s := range f.Sites {
		got[s.Calls]++
		if s.Bytes != 8*s.Calls || s.Timed == 0 || s.Calls < warmUp && s.Timed != s.Calls {
			t.Errorf("%+v: want 8 bytes a call, and all of few timed", s)
		}
		if s.Calls > warmUp && (s.Timed < warmUp+warmUp/Sampled || s.Timed > warmUp+4*warmUp/Sampled) {
			t.Errorf("%+v: want %d and then about one in %d timed", s, warmUp, Sampled)
		}
	}
	if got[3*warmUp] != 1 || got[5] != 2 {
		t.Errorf("%+v", f.Sites)
	}
	if all := m.Totals(0); all.Calls != 3*warmUp+10 || all.Bytes != 8*all.Calls || all.Time <= 0 {
		t.Errorf("%+v: want what all sites have", all)
	}
}

func TestNoCallIsLostWhereSitesRunOut(t *testing.T) {
	m := memory(1, false)
	r := m.Rank(0, func() string { return "somewhere" })
	calls := 0
	for depth := range 40 * Sites { // each a stack of its own
		nested(r, depth)
		calls++
	}
	f, _ := m.Read(0, 0)
	var sum int64
	for _, s := range f.Sites {
		sum += s.Calls
	}
	if sum != int64(calls) || f.Uncounted != 0 || len(f.Sites) != 2 {
		t.Errorf("%d of %d calls at %+v, %d at none: want all, at two places", sum, calls, f.Sites, f.Uncounted)
	}
}

// nested calls from a stack that the low bits of n choose.
//
//go:noinline
func nested(r *Rank, n int) {
	if n == 0 {
		call(r, Wait, 0)
		return
	}
	switch n % 8 {
	case 0:
		nested(r, n/8)
	case 1:
		nested(r, n/8)
	case 2:
		nested(r, n/8)
	case 3:
		nested(r, n/8)
	case 4:
		nested(r, n/8)
	case 5:
		nested(r, n/8)
	case 6:
		nested(r, n/8)
	default:
		nested(r, n/8)
	}
}

func TestGoroutinesCountTogether(t *testing.T) {
	m := memory(3, false)
	r := m.Rank(0, func() string { return "" })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				call(r, Isend, 10)
				r.Sent(2, 10)
			}
		})
	}
	all.Wait()
	f, _ := m.Read(0, 0)
	if len(f.Sites) != 1 || f.Sites[0].Calls != 4000 || f.Sites[0].Bytes != 40000 {
		t.Errorf("%+v: want 4000 calls of one place", f.Sites)
	}
	if len(f.Peers) != 1 || f.Peers[0] != (Peer{2, 4000, 40000}) {
		t.Errorf("%+v: want 4000 messages to rank 2", f.Peers)
	}
}

func TestATraceKeepsTheLatest(t *testing.T) {
	m := memory(1, true)
	r := m.Rank(0, func() string { return "" })
	for i := range Events + 10 {
		call(r, Send, i)
	}
	f, events := m.Read(0, 0)
	if len(events) != Events || f.Dropped != 10 || events[0].Bytes != 10 || events[Events-1].Bytes != Events+9 {
		t.Errorf("%d events from %+v, %d dropped: want the latest %d", len(events), events[0], f.Dropped, Events)
	}
}

// A call that sleeps in a wait counts with its own time, even if few calls are timed.
func TestALongCallAmongShortOnesIsCounted(t *testing.T) {
	m := memory(1, false)
	r := m.Rank(0, func() string { return "" })
	untimed := 0
	calls := func(wait func()) (took int64) {
		before, _ := m.Read(0, 0)
		for range 2 * warmUp {
			var s Span
			r.Begin(&s, Send, 8, nil)
			if s.begin == 0 {
				untimed++
				wait()
			}
			s.End()
			if s.begin != 0 {
				lend(r, -hour) // the calls are short, whatever holds a test up
			}
		}
		lend(r, hour*int64(2*warmUp-untimed))
		after, _ := m.Read(0, 0)
		if len(before.Sites) == 0 {
			return after.Sites[0].Time
		}
		return after.Sites[0].Time - before.Sites[0].Time
	}
	other := r.Sleeps().Begin() // of another goroutine, since before the calls
	if took := calls(func() { r.Sleeps().End(other, 100*hour) }); untimed == 0 || took > hour {
		t.Errorf("%d hours of %d calls that are not timed: want none of a wait that had begun before",
			took/hour, untimed)
	}
	untimed = 0
	if took := calls(func() { r.Sleeps().End(r.Sleeps().Begin(), hour/2) }) / (hour / 2); untimed == 0 ||
		took != int64(untimed) {
		t.Errorf("%d half hours of %d calls that are not timed: want one of each", took, untimed)
	}
}

// Periods in which calls are under way count once, whatever the number of calls.
func TestTimeInCallsIsThatOfAllTogether(t *testing.T) {
	var c counters
	const us = 1000 &^ (1<<clockBits - 1)
	c.enter(10 * us)
	c.enter(20 * us)
	c.exit(10*us, 30*us, 0)
	c.exit(20*us, 50*us, 15) // others of its length were as much beside others
	if got := c.busy.Load(); got != 40*us {
		t.Errorf("%d units, want 40", got/us)
	}
	c.enter(60 * us)
	c.exit(60*us, 61*us, 15)
	if got := c.busy.Load(); got != 56*us {
		t.Errorf("%d units, want 16 more", got/us)
	}
	c.enter(70 * us)
	if got := c.openFor(90 * us); got != 20*us {
		t.Errorf("open for %d units, want 20", got/us)
	}
	c.exit(70*us, 90*us, -1)
	if got := c.busy.Load(); got != 56*us || c.openFor(100*us) != 0 {
		t.Errorf("%d units, want no more: it was short, and not to be timed", got/us)
	}
}

func BenchmarkBegin(b *testing.B) {
	r := memory(1, false).Rank(0, func() string { return "" })
	for b.Loop() {
		call(r, Send, 8)
	}
}

// Calls of one place are one site, whatever in Go makes them, and calls of another are another.
func TestPlacesOfTheProgramAreSites(t *testing.T) {
	m := memory(1, false)
	r := m.Rank(0, func() string { return "in Go" })
	at := func(op Op, p *Place) {
		var s Span
		r.Begin(&s, op, 8, p)
		s.End()
	}
	a, b := NewPlace("train.py:31"), NewPlace("train.py:32")
	at(Send, a)
	at(Send, a)
	at(Recv, a)
	at(Send, b)
	at(Send, nil)
	at(Send, NewPlace(strings.Repeat("é", 40)+":")) // one byte too long
	f, _ := m.Read(0, 0)
	got := map[string]int64{}
	for _, s := range f.Sites {
		got[s.Op+" "+s.Place] = s.Calls
	}
	want := map[string]int64{
		"send train.py:31": 2, "recv train.py:31": 1, "send train.py:32": 1, "send in Go": 1,
		"send " + strings.Repeat("é", 39) + ":": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The time of a sampled call is that of all calls that it stands for.
func TestASampledCallHasTheTimeOfTheOthers(t *testing.T) {
	var s site
	s.took(7, 1)
	if total := s.took(5, Sampled); total != 7+5*Sampled || s.Timed != 2 {
		t.Errorf("calls of 7, and of 5 for %d, took %d in %d measured calls, want %d in 2", Sampled, total, s.Timed,
			7+5*Sampled)
	}
}
