package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// Tests of transport.Getter.

// direct returns a rank's Getter and the heaps of both ranks.
func (n *net) direct(rank world.Rank) (d transport.Getter, heaps [2][]byte) {
	return n.Ends[rank].Capabilities().Getter, [2][]byte{n.Heap(0), n.Heap(1)}
}

// place returns the place of b for rank's peer.
func (n *net) place(t *testing.T, rank world.Rank, b []byte) uint64 {
	t.Helper()
	d, _ := n.direct(rank)
	place := d.Place(1-rank, mem.Bytes(b))
	if place == 0 {
		t.Fatalf("%d bytes of rank %d's heap have no place", len(b), rank)
	}
	return place
}

// copied drives r until the copy with a token has ended, and returns its error.
func (r *rank) copied(token uint64) error {
	if err := r.until("a copy", func() bool { return !r.due[token] }); err != nil {
		return err
	}
	return r.sent[token]
}

// get begins a Get from the peer, and put a Put to the peer.
func (r *rank) get(place uint64, dst []byte, token uint64) {
	r.due[token] = true
	r.Capabilities().Getter.Get(1-r.id, place, mem.Bytes(dst), token, true)
}

func (r *rank) put(place uint64, src []byte, token uint64) {
	r.due[token] = true
	r.Capabilities().Getter.Put(1-r.id, place, mem.Bytes(src), token)
}

// copyLengths are, in bytes: one chunk, several chunks with a partial last one, and more than
// caches hold.
var copyLengths = []int{1, 100, 5000, 70_001, 300_000, 1<<20 + 3, 9 << 20}

// Rank 0 gets from rank 1's heap into its own memory and its heap, and puts from both. All bytes
// arrive at their places and nowhere else, beside frames.
func heapsAreReached(t *testing.T, n *net) {
	_, heaps := n.direct(0)
	rounds := 0
	all(t, n.ranks, func(r *rank) error {
		if r.id == 1 { // polls to help
			return r.until("the last frame", func() bool { return len(r.got) == 4*len(copyLengths) })
		}
		for _, size := range copyLengths {
			for i := range 4 {
				own := make([]byte, size+2)
				if i%2 == 1 {
					own = heaps[0][3+i:][:size+2]
				}
				if err := r.exchange(n, t, rounds, size, own, heaps[1][5*i:][:size+2], i < 2); err != nil {
					return fmt.Errorf("%d bytes, variant %d: %w", size, i, err)
				}
				r.post(1, rounds, 100)
				rounds++
			}
		}
		return r.flushed()
	})
}

// exchange copies the bytes between the ends of theirs to own, or in the other direction.
func (r *rank) exchange(n *net, t *testing.T, round, size int, own, theirs []byte, get bool) error {
	dst, src := own, theirs
	if !get {
		dst, src = src, dst
	}
	want := pattern(1, round, size+2)
	copy(src, want)
	clear(dst)
	place, token := n.place(t, 1, theirs[1:1+size]), uint64(1+round)
	if get {
		r.get(place, own[1:1+size], token)
	} else {
		r.put(place, own[1:1+size], token)
	}
	if err := r.copied(token); err != nil {
		return err
	}
	if want[0], want[size+1] = 0, 0; !bytes.Equal(dst, want) {
		return errors.New("wrong bytes, or in the wrong place")
	}
	return nil
}

// An idle peer does not delay copies.
func copiesNeedNoPeer(t *testing.T, n *net) {
	_, heaps := n.direct(0)
	for i, size := range copyLengths {
		if err := n.ranks[0].exchange(n, t, i, size, heaps[0][1:][:size+2], heaps[1][:size+2], true); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func placesThatMeanNothing(t *testing.T, n *net) {
	d, heaps := n.direct(1)
	for name, b := range map[string][]byte{
		"of memory of one's own": make([]byte, 8), "of nothing": nil, "of a peer's heap": heaps[0][:8],
		"across the end": heaps[1][: len(heaps[1])+1 : cap(heaps[1])],
	} {
		if place := d.Place(0, mem.Bytes(b)); place != 0 {
			t.Errorf("place %#x %s, want none", place, name)
		}
	}
	r, whole := n.ranks[0], n.place(t, 1, heaps[1])
	for i, place := range []uint64{0, whole - 1, whole + 1, whole + uint64(len(heaps[1])), 1 << 39, ^uint64(0)} {
		b := make([]byte, len(heaps[1]))
		r.get(place, b, 1)
		r.put(place, b, 2)
		if get, put := r.copied(1), r.copied(2); !errors.Is(get, transport.ErrRecalled) ||
			!errors.Is(put, transport.ErrRecalled) {
			t.Errorf("%d: Get from and Put to place %#x: %v and %v, want %v", i, place, get, put, transport.ErrRecalled)
		}
	}
}

// A peer whose copy meets a recall is notified: before the first byte, during the copy, or when all
// is copied but not yet reported.
func recalledMemory(t *testing.T, n *net) {
	d, heaps := n.direct(1)
	r, size := n.ranks[0], 5<<20
	for polls := range 3 {
		place := n.place(t, 1, heaps[1][:size])
		r.get(place, heaps[0][:size], 1)
		for range polls {
			r.Poll(-1)
		}
		d.Recall()
		r.put(place, make([]byte, size), 2)
		if get, put := r.copied(1), r.copied(2); !errors.Is(get, transport.ErrRecalled) ||
			!errors.Is(put, transport.ErrRecalled) {
			t.Errorf("recalled after %d polls: Get %v, Put %v, want %v", polls, get, put, transport.ErrRecalled)
		}
	}
	if err := r.exchange(n, t, 7, 1000, make([]byte, 1002), heaps[1][:1002], true); err != nil {
		t.Errorf("after the recalls: %v", err)
	}
}

// A forgotten copy is not reported and touches no memory; later copies continue.
func forgottenCopies(t *testing.T, n *net) {
	_, heaps := n.direct(0)
	r, size := n.ranks[0], 5<<20
	place, dst := n.place(t, 1, heaps[1][:size]), heaps[0][:size]
	r.get(place, dst, 1)
	r.put(place, make([]byte, 100), 2)
	r.Poll(-1)
	r.Forget(1, 1)
	delete(r.due, 1)
	clear(dst)
	copy(heaps[1], pattern(1, 1, size))
	n.ranks[1].Poll(-1) // rank 0 asked it to help
	if err := r.copied(2); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(dst, make([]byte, size)) {
		t.Error("a copy continues that was forgotten")
	}
	if !bytes.Equal(heaps[1][:100], make([]byte, 100)) {
		t.Error("the next copy has not been made")
	}
}

func copiesEndInClose(t *testing.T, n *net) {
	_, heaps := n.direct(0)
	r := n.ranks[0]
	place := n.place(t, 1, heaps[1][:5<<20])
	r.get(place, make([]byte, 5<<20), 1)
	r.put(place, make([]byte, 5<<20), 2)
	if !r.Close(true) || !errors.Is(r.sent[1], transport.ErrClosed) || !errors.Is(r.sent[2], transport.ErrClosed) {
		t.Errorf("closed: Get %v, Put %v, want %v", r.sent[1], r.sent[2], transport.ErrClosed)
	}
}
