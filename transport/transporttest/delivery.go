package transporttest

import (
	"bytes"
	"fmt"
	"testing"

	"gompi/internal/world"
	"gompi/transport"
)

// Tests of delivery.

func headerArrivesWhole(t *testing.T, n *net) {
	want := transport.Header{
		Kind: transport.Coll, Flags: 0xa5, Tag: -7, Comm: 1<<63 | 3, Seq: 1<<62 | 9, Len: 3,
		A: 0xfedcba9876543210, B: 0x0123456789abcdef,
	}
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			r.send(1, want, []byte("abc"), 1)
			return r.flushed()
		}
		if err := r.until("the frame", func() bool { return len(r.got) == 1 }); err != nil {
			return err
		}
		if m := r.got[0]; m.peer != 0 || m.h != want || string(m.payload) != "abc" {
			return fmt.Errorf("got %+v with %q from rank %d, want %+v with abc from 0", m.h, m.payload, m.peer, want)
		}
		return nil
	})
}

// flushed drives r until all of its frames have been sent.
func (r *rank) flushed() error {
	return r.until("frames to leave", func() bool {
		c := r.Capabilities().Progresser
		return len(r.due) == 0 && (c == nil || !c.Pending())
	})
}

// post sends message number from r to peer.
func (r *rank) post(peer world.Rank, number, size int) {
	r.send(peer, transport.Header{Kind: transport.Eager, Tag: int32(number), A: uint64(size)},
		pattern(r.id, number, size), uint64(peer)<<32|uint64(number))
}

// check compares the messages from peer with the messages of post.
func (r *rank) check(peer world.Rank, sizes []int) error {
	i := 0
	for _, m := range r.got {
		if m.peer != peer {
			continue
		}
		if i >= len(sizes) {
			return fmt.Errorf("rank %d: %d messages from rank %d and another, %+v", r.id, i, peer, m.h)
		}
		if int(m.h.Tag) != i || int(m.h.A) != sizes[i] || int(m.h.Len) != sizes[i] {
			return fmt.Errorf("rank %d: message %d from rank %d is %+v, want tag %d and %d bytes", r.id, i, peer, m.h,
				i, sizes[i])
		}
		if !bytes.Equal(m.payload, pattern(peer, i, sizes[i])) {
			return fmt.Errorf("rank %d: message %d from rank %d, %d bytes: wrong bytes", r.id, i, peer, sizes[i])
		}
		i++
	}
	if i != len(sizes) {
		return fmt.Errorf("rank %d: %d messages from rank %d, want %d", r.id, i, peer, len(sizes))
	}
	return nil
}

// oneWay sends messages of these sizes from rank 0 to rank 1 and checks them.
func oneWay(t *testing.T, n *net, sizes []int) {
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			for i, size := range sizes {
				r.post(1, i, size)
			}
			return r.flushed()
		}
		if err := r.drive("all messages", 0, func() bool { return len(r.got) == len(sizes) }); err != nil {
			return err
		}
		return r.check(0, sizes)
	})
}

func framesArriveInOrder(t *testing.T, n *net) {
	sizes := make([]int, 2000)
	for i := range sizes {
		sizes[i] = []int{0, 8, 100, 5000, 0, 70000}[i%6]
	}
	oneWay(t, n, sizes)
}

func anySize(t *testing.T, n *net) {
	var sizes []int
	for _, around := range []int{1, 48, 208, 256, 4096, 1 << 14, 1 << 16, 1 << 20} {
		sizes = append(sizes, around-1, around, around+1)
	}
	oneWay(t, n, append(sizes, 8<<20, 0, 8<<20+5))
}

// Frames sent and taken in one step, where possible, keep their order among the others.
func takenWhole(t *testing.T, n *net) {
	sizes := make([]int, 3000)
	for i := range sizes {
		sizes[i] = []int{0, 8, 9, 500, 20_000, 90_000}[i*7%6]
	}
	n.ranks[1].takes = func(h *transport.Header) bool { return h.Tag%3 != 0 }
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			for i, size := range sizes {
				h := transport.Header{Kind: transport.Eager, Tag: int32(i), A: uint64(size)}
				if i%4 == 0 || !r.sendNow(1, h, pattern(0, i, size)) {
					r.post(1, i, size)
				}
			}
			return r.flushed()
		}
		err := r.drive("all messages", 0, func() bool {
			if next := len(r.got); next%5 > 0 {
				r.recvNow(0, next, []int{600, 30_000, 100_000}[next%3])
			}
			return len(r.got) == len(sizes)
		})
		if err != nil {
			return err
		}
		return r.check(0, sizes)
	})
}

func smallWindows(t *testing.T, n *net) {
	sizes := []int{1<<20 + 3, 10, 999, 1000, 1001, 300000, 0, 5}
	n.ranks[1].window = func(h *transport.Header) int { return 1000 }
	oneWay(t, n, sizes)
}

func droppedPayload(t *testing.T, n *net) {
	sizes := []int{300000, 10, 1 << 20, 0, 77, 2500}
	n.ranks[1].window = func(h *transport.Header) int { return 2000 }
	n.ranks[1].drops = func(h *transport.Header) int { return int(h.Tag) % 3 } // 0, 1 or 2 windows
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			for range 2 {
				for i, size := range sizes {
					r.post(1, i, size)
				}
				if err := r.flushed(); err != nil {
					return err
				}
			}
			return nil
		}
		if err := r.until("all messages", func() bool { return len(r.got) == 2*len(sizes) }); err != nil {
			return err
		}
		for i, m := range r.got {
			i %= len(sizes)
			kept := min(2000*(i%3), sizes[i])
			if int(m.h.Tag) != i || !bytes.Equal(m.payload, pattern(0, i, sizes[i])[:kept]) {
				return fmt.Errorf("message %d: %d bytes kept, want the first %d of %+v", i, len(m.payload), kept, m.h)
			}
		}
		return nil
	})
}

func manyBothWays(t *testing.T, n *net) {
	sizes := make([]int, 3000)
	for i := range sizes {
		sizes[i] = i * 7 % 3001
	}
	bothWays(t, n, sizes)
}

// bothWays lets two ranks send each other messages of these sizes at the same time.
func bothWays(t *testing.T, n *net, sizes []int) {
	all(t, n.ranks, func(r *rank) error {
		for i, size := range sizes {
			r.post(1-r.id, i, size)
		}
		if err := r.until("all messages", func() bool { return len(r.got) == len(sizes) }); err != nil {
			return err
		}
		if err := r.flushed(); err != nil {
			return err
		}
		return r.check(1-r.id, sizes)
	})
}

func allPairs(t *testing.T, n *net) {
	sizes := []int{0, 100, 200000, 3, 65536}
	all(t, n.ranks, func(r *rank) error {
		for i, size := range sizes {
			for k := range n.size() - 1 {
				r.post((r.id+k+1)%n.size(), i, size)
			}
		}
		if err := r.until("all messages", func() bool {
			return len(r.got) == len(sizes)*(len(n.ranks)-1)
		}); err != nil {
			return err
		}
		for peer := range n.size() {
			if peer == r.id {
				continue
			}
			if err := r.check(peer, sizes); err != nil {
				return err
			}
		}
		return r.flushed()
	})
}

// Each message is answered from inside the callback that completes it.
func sinkMaySend(t *testing.T, n *net) {
	const rounds = 50
	sizes := make([]int, rounds)
	for i := range sizes {
		sizes[i] = i % 2 * 100000
	}
	for _, r := range n.ranks {
		r.hook = func(m *message) {
			if next := int(m.h.Tag) + int(r.id); next < rounds { // rank 1 counts up
				r.post(1-r.id, next, sizes[next])
			}
		}
	}
	all(t, n.ranks, func(r *rank) error {
		if r.id == 1 {
			r.post(0, 0, sizes[0])
		}
		// Rank 0 answers number i with i, rank 1 answers i with i+1.
		if err := r.until("all messages", func() bool { return len(r.got) == rounds }); err != nil {
			return err
		}
		if err := r.flushed(); err != nil {
			return err
		}
		return r.check(1-r.id, sizes)
	})
}
