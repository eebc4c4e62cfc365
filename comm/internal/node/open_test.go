package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// Whatever the timing, nobody reads of an open vector what is not there yet or not any
// more, beside other collectives, and with more pieces than there are heads.
func TestStressOpenVectors(t *testing.T) {
	stressed(t, func(round uint64, p int, pause func(rank int)) error {
		h := newHouse(p)
		rooms, _ := h.rooms(t, false, pause)
		return together(rooms, func(r *Room) error {
			rng := rand.New(rand.NewPCG(round, 98)) // the same on all
			for nth := range 60 {
				n, pieces, inPlace := 1+rng.IntN(1<<rng.IntN(11)), 1+rng.IntN(3*depth), rng.IntN(2) == 0
				kind, root := rng.IntN(kinds), rng.IntN(p)
				err := sumOpen(r, h, n, pieces, nth, inPlace, func() { pause(r.me) })
				if err == nil {
					err = once(r, kind, n, root, nth, unmoved)
				}
				if err != nil {
					h.broken.CompareAndSwap(nil, &err) // or the others wait for ever
					return err
				}
			}
			return nil
		})
	})
}

// sumOpen sums vectors of n elements by pieces, of which each member makes some.
func sumOpen(r *Room, h *house, n, pieces, nth int, inPlace bool, pause func()) error {
	begin(r, uint64(nth+1))
	move := h.inHeap(r.me)
	send := mem.Of(move(vector(nth, r.me, n)))
	recv := send
	if !inPlace {
		recv = mem.Of(move(make([]int64, n)))
	}
	if open, err := r.Open(send, recv, send.Size(), pieces); !open {
		return fmt.Errorf("call %d: vectors are not open: %v", nth, err)
	}
	part := func(b mem.Buffer, i int) mem.Buffer { return b.Slice(i*n/pieces, (i+1)*n/pieces) }
	for i := range pieces {
		pause()
		if i%r.size() == r.me {
			if err := r.Fold(part(recv, i), part(send, i), i*n/pieces, call.Op{Kind: mem.Sum}); err != nil {
				return err
			}
			r.Made(i)
			r.Made(i / 2) // which says nothing new
		}
		if k := i - 3; k >= 0 && k%r.size() != r.me {
			if err := r.Fetch(k%r.size(), k, part(recv, k), k*n/pieces); err != nil {
				return err
			}
		}
	}
	for k := max(pieces-3, 0); k < pieces; k++ {
		if k%r.size() != r.me {
			if err := r.Fetch(k%r.size(), k, part(recv, k), k*n/pieces); err != nil {
				return err
			}
		}
	}
	if err := r.Shut(); err != nil {
		return err
	}
	for i, got := range mem.Slice[int64](recv) {
		want := int64(0)
		for q := range r.size() {
			want += value(nth, q, i)
		}
		if got != want {
			return fmt.Errorf("call %d, element %d of %d in %d pieces: %d, want %d", nth, i, n, pieces, got, want)
		}
	}
	clear(h.heaps[r.me]) // at once: nobody reads there any more
	return nil
}

// What a member opens and nobody can reach leaves all vectors shut; what it does not
// open may lie anywhere.
func TestVectorsThatAreNotInHeapsStayShut(t *testing.T) {
	for _, private := range []bool{false, true} {
		h := newHouse(3)
		rooms, _ := h.rooms(t, false, func(int) {})
		err := together(rooms, func(r *Room) error {
			begin(r, 1)
			v := make([]int64, 1000)
			if r.me != 1 || !private {
				v = h.inHeap(r.me)(v)
			}
			open, err := r.Open(mem.Of(v), mem.Buffer{}, 8000, 1)
			if open != !private {
				err = fmt.Errorf("rank %d: open %v with a private vector %v, %v", r.me, open, private, err)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
