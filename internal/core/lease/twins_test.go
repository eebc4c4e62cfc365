package lease

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"gompi/internal/core/match"
	"gompi/mpi/libmpi/twins"
)

// C posts receives in a Record and finds the receives of messages, as Go's queues do. Now and then
// Go takes over the receives that C has posted, and gives them back.
func TestReceivesInGoAndC(t *testing.T) {
	const members, anyTagInC = 3, -2
	c, l, r := twins.Start(t), lender(t), rand.New(rand.NewPCG(1, 2))
	rec := l.Record()
	memory := unsafe.Slice((*byte)(unsafe.Pointer(rec)), unsafe.Sizeof(*rec))
	for slot := range 2 {
		l.open(slot, uint64(100+slot), members)
		for m := range members {
			rec.routes[slot][m] = uint16(m + 2*slot + 1)
		}
	}
	for local := range members + 2 {
		rec.peers[local].local = int32(local)
	}
	var queues [2]match.Queues[Receive, Receive]
	var posted []*match.Recv[Receive] // in order
	found := 0
	for i := range 800 {
		slot := r.IntN(2)
		source, tag := r.IntN(members), r.IntN(4)
		switch {
		case r.IntN(2) == 0 && len(posted) < 40:
			n := r.IntN(99)
			x := &match.Recv[Receive]{Source: source, Tag: tag, Val: &Receive{
				Slot: slot, Source: source, Tag: tag, Bytes: n, Run: n, Stride: n, Buf: uintptr(r.Uint32()),
			}}
			if r.IntN(3) == 0 {
				x.Source, x.Val.Source = match.AnySource, match.AnySource
			}
			if r.IntN(3) == 0 {
				x.Tag, x.Val.Tag = match.AnyTag, anyTagInC
			}
			args := []uint64{uint64(slot), uint64(x.Val.Source), uint64(x.Val.Tag), uint64(x.Val.Buf), uint64(n)}
			if x.Val.Place = int(c.Call("queues_post", memory, args...)); x.Val.Place < Held {
				queues[slot].Post(x)
				posted = append(posted, x)
			}
		case i%50 == 0:
			takeOverAndGiveBack(t, l, posted)
		default:
			inC := int(c.Call("queues_take_recv", memory, uint64(source+2*slot), uint64(tag), uint64(100+slot)))
			x := queues[slot].TakeRecv(source, tag)
			if x == nil && inC != Held || x != nil && inC != x.Val.Place {
				t.Fatalf("step %d: a message of source %d with tag %d goes to %+v in Go, to place %d in C", i, source,
					tag, x, inC)
			}
			if x != nil {
				posted = slices.DeleteFunc(posted, func(y *match.Recv[Receive]) bool { return y == x })
				found++
			}
		}
	}
	takeOverAndGiveBack(t, l, posted)
	if found < 100 {
		t.Errorf("%d messages had receives: want 100", found)
	}
}

func takeOverAndGiveBack(t *testing.T, l *Lease, want []*match.Recv[Receive]) {
	t.Helper()
	var got []Receive
	var places []int
	l.TakeOver(func(r Receive) { got, places = append(got, r), append(places, r.Place) })
	if !slices.EqualFunc(got, want, func(r Receive, x *match.Recv[Receive]) bool { return r == *x.Val }) {
		t.Fatalf("Go takes over %+v, and %d were posted", got, len(want))
	}
	l.GiveBack(func() []int { return places })
}
