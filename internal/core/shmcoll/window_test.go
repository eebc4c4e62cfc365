package shmcoll

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/internal/core/call"
	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
	"gompi/internal/mem"
)

// Whatever the timing, no member reads of an open vector what is not there yet or not any
// more, beside other collectives, and with more chunks than there are heads.
func TestStressOpenVectors(t *testing.T) {
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		members, h := comms(t, p, pause)
		return shmsynctest.Together(members, func(r *Collectives) error {
			rng := rand.New(rand.NewPCG(round, 98)) // the same on all
			for nth := range 60 {
				n, chunks, inPlace := 1+rng.IntN(1<<rng.IntN(11)), 1+rng.IntN(3*shmsync.Depth), rng.IntN(2) == 0
				kind, root := rng.IntN(kinds), rng.IntN(p)
				err := sumOpen(r, h, n, chunks, nth, inPlace, func() { pause(r.Me()) })
				if err == nil {
					err = once(r, kind, n, root, nth, unmoved)
				}
				if err != nil {
					return h.Break(err)
				}
			}
			return nil
		})
	})
}

// sumOpen sums vectors of n elements by chunks, of which each member makes some.
func sumOpen(r *Collectives, h *shmsynctest.Host, n, chunks, nth int, inPlace bool, pause func()) error {
	begin(r, uint64(nth+1))
	move := inHeap(h, r.Me())
	send := mem.Of(move(shmsynctest.Vector(nth, r.Me(), n)))
	recv := send
	if !inPlace {
		recv = mem.Of(move(make([]int64, n)))
	}
	w, open, err := r.OpenWindow(send, recv, send.Size(), chunks)
	if !open {
		return fmt.Errorf("call %d: vectors are not open: %v", nth, err)
	}
	part := func(b mem.Buffer, i int) mem.Buffer { return b.Slice(i*n/chunks, (i+1)*n/chunks) }
	for i := range chunks {
		pause()
		if i%r.Size() == r.Me() {
			if err := w.Fold(part(recv, i), part(send, i), i*n/chunks, call.Op{Kind: mem.Sum}); err != nil {
				return err
			}
			w.Made(i)
			w.Made(i / 2) // which says nothing new
		}
		if k := i - 3; k >= 0 && k%r.Size() != r.Me() {
			if err := w.Fetch(k%r.Size(), k, part(recv, k), k*n/chunks); err != nil {
				return err
			}
		}
	}
	for k := max(chunks-3, 0); k < chunks; k++ {
		if k%r.Size() != r.Me() {
			if err := w.Fetch(k%r.Size(), k, part(recv, k), k*n/chunks); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	for i, got := range mem.Slice[int64](recv) {
		want := int64(0)
		for q := range r.Size() {
			want += shmsynctest.Value(nth, q, i)
		}
		if got != want {
			return fmt.Errorf("call %d, element %d of %d in %d chunks: %d, want %d", nth, i, n, chunks, got, want)
		}
	}
	clear(h.Heaps[r.Me()]) // at once: no member reads there any more
	return nil
}

// What a member opens and no member can reach leaves all vectors shut; what it does not
// open may lie anywhere.
func TestVectorsThatAreNotInHeapsStayShut(t *testing.T) {
	for _, private := range []bool{false, true} {
		members, h := comms(t, 3, func(int) {})
		err := shmsynctest.Together(members, func(r *Collectives) error {
			begin(r, 1)
			v := make([]int64, 1000)
			if r.Me() != 1 || !private {
				v = inHeap(h, r.Me())(v)
			}
			_, open, err := r.OpenWindow(mem.Of(v), mem.Buffer{}, 8000, 1)
			if open != !private {
				err = fmt.Errorf("rank %d: open %v with a private vector %v, %v", r.Me(), open, private, err)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
