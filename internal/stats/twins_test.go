package stats

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/internal/calls"
	"gompi/mpi/libmpi/twins"
)

// Calls of several threads begin and end at random, in Go and in C.
func TestTheTimeInCallsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var inGo counters
	inGo.clock = 20
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&inGo)), unsafe.Sizeof(inGo))
	inC := bytes.Clone(memory)
	var begun []int64
	now := int64(1 << 40)
	for i := range 1000 {
		now += r.Int64N(5000)
		what := "enter"
		if len(begun) == 0 || len(begun) < 4 && r.IntN(2) == 0 {
			inGo.enter(now)
			c.Call("counters_enter", inC, uint64(now))
			begun = append(begun, now)
		} else {
			what = "exit"
			at, others := r.IntN(len(begun)), r.Int64N(17)-1
			inGo.exit(begun[at], now, others)
			c.Call("counters_exit", inC, uint64(begun[at]), uint64(now), uint64(others))
			begun = append(begun[:at], begun[at+1:]...)
		}
		if !bytes.Equal(memory, inC) {
			t.Fatalf("step %d, %s: Go leaves %x, C %x", i, what, memory, inC)
		}
	}
	if inGo.busy.Load() == 0 {
		t.Error("no time was counted")
	}
}

// counted is the area of a rank with few peers and events, as in memory shared with the agent.
type counted struct {
	counters
	sites  [Sites]site
	table  [4]peer
	latest [16]event
}

func (m *counted) rank() *Rank {
	m.clock, m.seed = -50, 7 // every call has taken more than that, and so says when it ended
	m.counters.peers = uint64(len(m.table))
	r := &Rank{sleeps: new(Sleeps)}
	r.area = area{counters: &m.counters, sites: &m.sites, peers: m.table[:], events: m.latest[:m.counters.events]}
	return r
}

func (m *counted) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// Calls are counted by C, too, with times that Go has measured: at two sites many times, so that
// only some calls are timed there, and at many once.
func TestCallsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	for events, n := range map[uint64]int{0: 1400, 16: 200} {
		r := rand.New(rand.NewPCG(1, 2))
		m := new(counted)
		m.events = events
		rank := m.rank()
		untimed := 0
		for i := range n {
			at := uint64(r.IntN(2)) + 1
			if r.IntN(20) == 0 {
				at = r.Uint64()
			}
			for k := range m.sites {
				if events == 0 && i%50 == 0 && m.sites[k].key.Load() != 0 {
					m.sites[k].isShort.Store(1) // whatever calls have taken
				}
			}
			inC := bytes.Clone(m.bytes())
			args := rank.someCall(c.Call("name", nil), at, r)
			if args[1] == 0 {
				untimed++
			}
			if c.Call("gompi_span", inC, args...); !bytes.Equal(inC, m.bytes()) {
				t.Fatalf("%d events, call %d at %x, %v in C: what the two leave differs at byte %d",
					events, i, at, args, firstDifference(inC, m.bytes()))
			}
		}
		if events == 0 && untimed == 0 {
			t.Error("all calls were timed")
		}
	}
}

// someCall counts a call at a place, and returns the same call for C. name is the function's part
// of keys in C.
func (r *Rank) someCall(name, at uint64, some *rand.Rand) []uint64 {
	const op = Op(calls.Allreduce)
	var sp Span
	n := some.IntN(3) * some.IntN(1000)
	r.Begin(&sp, op, n, &Place{hash: at ^ uint64(op)})
	begin, earlier, peer, tag := sp.begin, some.Int64N(Short), int64(-1), int64(0)
	if some.IntN(500) == 0 {
		earlier = Long + 1
	}
	if begin == 0 {
		earlier = 0
	}
	sp.begin -= earlier
	if some.IntN(2) == 0 {
		peer, tag = some.Int64N(4), some.Int64N(99)
		r.Message(&sp, int(peer), int(tag))
	}
	before := sp.site.Time
	sp.End()
	end := sp.begin + (sp.site.Time-before)/sp.stands + r.clock
	to := uint64(uint32(peer)) | uint64(tag)<<32
	return []uint64{name ^ at, uint64(begin), uint64(earlier), uint64(end), uint64(n), to}
}

// Messages of MPI programs are counted by Go, or by C: to ranks within and beyond the table.
func TestMessagesInGoAndC(t *testing.T) {
	c := twins.Start(t)
	m := new(counted)
	r := m.rank()
	r.count = func(int, int, int) {}
	for i := range 100 {
		inC := bytes.Clone(m.bytes())
		r.move(i)
		r.Sent([]int{3, 0, 9}[i%3], i) // as of_sent has the world's ranks
		if c.Call("gompi_count_sent", inC, uint64(i%3), uint64(i)); !bytes.Equal(inC, m.bytes()) {
			t.Fatalf("message %d: what the two leave differs at byte %d", i, firstDifference(inC, m.bytes()))
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
