package stats

import (
	"sync"
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

// call stands for a function of comm, between the program and Begin.
//
//go:noinline
func call(r *Rank, op Op, bytes int) {
	var s Span
	r.Begin(&s, op, bytes)
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
			s.time.Add(time)
		}
	}
}

func TestSitesAreToldApart(t *testing.T) {
	m := memory(1, false)
	places := 0
	r := m.Rank(0, func() string { places++; return string(rune('a' + places - 1)) }, false)
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
	f, _ := m.Read(0)
	if len(f.Sites) != 3 || places != 3 {
		t.Fatalf("%+v: want three sites", f.Sites)
	}
	got := map[uint64]int{}
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
	r := m.Rank(0, func() string { return "somewhere" }, false)
	calls := 0
	for depth := range 40 * Sites { // each a stack of its own
		nested(r, depth)
		calls++
	}
	f, _ := m.Read(0)
	var sum uint64
	for _, s := range f.Sites {
		sum += s.Calls
	}
	if sum != uint64(calls) || f.Uncounted != 0 || len(f.Sites) != 2 {
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
	r := m.Rank(0, func() string { return "" }, false)
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
	f, _ := m.Read(0)
	if len(f.Sites) != 1 || f.Sites[0].Calls != 4000 || f.Sites[0].Bytes != 40000 {
		t.Errorf("%+v: want 4000 calls of one place", f.Sites)
	}
	if len(f.Peers) != 1 || f.Peers[0] != (Peer{2, 4000, 40000}) {
		t.Errorf("%+v: want 4000 messages to rank 2", f.Peers)
	}
}

func TestATraceKeepsTheLatest(t *testing.T) {
	m := memory(1, true)
	r := m.Rank(0, func() string { return "" }, false)
	for i := range Events + 10 {
		call(r, Send, i)
	}
	f, events := m.Read(0)
	if len(events) != Events || f.Dropped != 10 || events[0].Bytes != 10 || events[Events-1].Bytes != Events+9 {
		t.Errorf("%d events from %+v, %d dropped: want the latest %d", len(events), events[0], f.Dropped, Events)
	}
}

func BenchmarkBegin(b *testing.B) {
	r := memory(1, false).Rank(0, func() string { return "" }, false)
	for b.Loop() {
		call(r, Send, 8)
	}
}
