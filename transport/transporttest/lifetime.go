package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// Tests of buffers, sleep, and close.

const large = 4 << 20 // more than any transport copies or a socket takes

func bufferReuse(t *testing.T, n *net) {
	sizes := make([]int, 300)
	for i := range sizes {
		sizes[i] = i * 211 % 70000
	}
	all(t, n.ranks, func(r *rank) error {
		if r.id == 1 {
			if err := r.until("all messages", func() bool { return len(r.got) == len(sizes) }); err != nil {
				return err
			}
			return r.check(0, sizes)
		}
		buf := make([]byte, 70000)
		for i, size := range sizes {
			copy(buf, pattern(0, i, size))
			token := uint64(i + 1)
			if !r.send(1, transport.Header{Kind: transport.Eager, Tag: int32(i), A: uint64(size)}, buf[:size], token) {
				if err := r.until("Sent", func() bool { return !r.due[token] }); err != nil {
					return err
				}
			}
			clear(buf)
		}
		return r.flushed()
	})
}

func sentOnce(t *testing.T, n *net) {
	const frames = 20
	contact(t, n) // later frames find the connection open
	all(t, n.ranks, func(r *rank) error {
		if r.id == 1 {
			return r.until("all messages", func() bool { return len(r.got) == frames })
		}
		for i := range frames {
			r.post(1, i, large/(i+1))
		}
		late := len(r.due)
		if err := r.flushed(); err != nil {
			return err
		}
		if len(r.sent) != late {
			return fmt.Errorf("%d buffers were due, %d were given back", late, len(r.sent))
		}
		for token, err := range r.sent {
			if err != nil {
				return fmt.Errorf("Sent(%d, %v) of a frame that arrives", token, err)
			}
		}
		return nil
	})
}

// A forgotten frame is delivered all the same, from a copy.
func forgottenSend(t *testing.T, n *net) {
	token := uint64(7)
	r := n.ranks[0]
	b := pattern(0, 0, large)
	if !r.send(1, transport.Header{Kind: transport.Eager, A: large}, b, token) {
		r.Forget(1, token)
		delete(r.due, token) // Sent must not come
	}
	clear(b)
	r.post(1, 1, 10)
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			return r.flushed()
		}
		if err := r.until("both messages", func() bool { return len(r.got) == 2 }); err != nil {
			return err
		}
		return r.check(0, []int{large, 10})
	})
}

// A payload whose window is forgotten during its arrival is read to its end, and the window is not
// written to.
func forgottenWindow(t *testing.T, n *net) {
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			r.post(1, 0, large)
			r.post(1, 1, 10)
			return r.flushed()
		}
		// If a payload takes several Polls, Forget comes half-way.
		if err := r.until("the first frame", func() bool { return len(r.arriving)+len(r.got) > 0 }); err != nil {
			return err
		}
		for token, a := range r.arriving {
			r.Forget(0, token)
			delete(r.arriving, token)
			clear(a.scratch)
			defer func() {
				if bytes.ContainsFunc(a.scratch, func(c rune) bool { return c != 0 }) {
					r.violated("a forgotten window was written to")
				}
			}()
		}
		last := func() bool { return len(r.got) > 0 && r.got[len(r.got)-1].h.Tag == 1 }
		return r.until("the second message", last)
	})
}

// Two ranks take turns and sleep in between: one lost wake-up stops both.
func sleepersAreWoken(t *testing.T, n *net) {
	const rounds = 300
	all(t, n.ranks, func(r *rank) error {
		late := time.NewTimer(timeout)
		defer late.Stop()
		for i := range rounds {
			if i%2 == int(r.id) {
				r.post(1-r.id, i, i%3*40000)
				continue
			}
			late.Reset(timeout) // for one wake-up: all together may take longer
			for want := i/2 + 1; len(r.got) < want; {
				if r.Poll(-1) == 0 && len(r.got) < want {
					if err := r.sleep(late.C); err != nil {
						return fmt.Errorf("rank %d: asleep in round %d of %d", r.id, i, rounds)
					}
				}
			}
		}
		return r.flushed()
	})
}

func goodbyeAfterData(t *testing.T, n *net) {
	sizes := []int{10, large, 0, 70000, 8}
	closing := make(chan struct{})
	all(t, n.ranks, func(r *rank) error {
		if r.id == 0 {
			for i, size := range sizes {
				r.post(1, i, size)
			}
			r.Close(false)
			close(closing)
			return r.close()
		}
		<-closing // reads only after the other's Close has begun
		if err := r.until("the goodbye", func() bool { return r.lost[0] != nil }); err != nil {
			return err
		}
		if !errors.Is(r.lost[0], transport.ErrGone) {
			return fmt.Errorf("lost the rank that closed: %v, want %v", r.lost[0], transport.ErrGone)
		}
		if err := r.check(0, sizes); err != nil {
			return err
		}
		if !r.send(0, transport.Header{Kind: transport.Eager}, make([]byte, large), 1) {
			return errors.New("a frame to a rank that has gone was taken in")
		}
		return r.close()
	})
}

func allClose(t *testing.T, n *net) {
	all(t, n.ranks, func(r *rank) error {
		for peer := range n.size() {
			if peer != r.id {
				r.post(peer, 0, 1000)
			}
		}
		if err := r.until("a message from each", func() bool { return len(r.got) == len(n.ranks)-1 }); err != nil {
			return err
		}
		if err := r.close(); err != nil {
			return err
		}
		for peer, err := range r.lost {
			if !errors.Is(err, transport.ErrGone) {
				return fmt.Errorf("rank %d: lost rank %d, which closed: %v", r.id, peer, err)
			}
		}
		return nil
	})
}

func nothingArrivesInClose(t *testing.T, n *net) {
	contact(t, n)
	closing, other := n.ranks[0], n.ranks[1]
	for i := range 4 {
		closing.post(1, i, large) // keeps Close from ending
		other.post(0, i, large/4*i)
	}
	for range 1000 {
		if closing.Close(false) {
			t.Fatal("Close has ended, although no peer has read what was sent")
		}
		other.Transport.Send(0, &transport.Header{Kind: transport.Credit}, mem.Buffer{}, 0)
	}
	if n := len(closing.got) + len(closing.arriving); n != 0 {
		t.Errorf("%d frames arrived during Close", n)
	}
}

// A forced Close gives the buffer back although no peer reads; newNet checks that.
func forcedClose(t *testing.T, n *net) {
	contact(t, n)
	r := n.ranks[0]
	for i := range 4 {
		r.post(1, i, large)
	}
	if len(r.due) == 0 {
		t.Fatalf("%d bytes were taken by a peer that does not read", 4*large)
	}
	if !r.Close(true) {
		t.Error("a forced Close did not end")
	}
	if !r.Close(false) {
		t.Error("a second Close did not say that all is closed")
	}
}

// contact lets all ranks exchange a frame with all others.
func contact(t *testing.T, n *net) {
	all(t, n.ranks, func(r *rank) error {
		for peer := range n.size() {
			if peer != r.id {
				r.send(peer, transport.Header{Kind: transport.Credit}, nil, 0)
			}
		}
		if err := r.until("contact", func() bool { return len(r.got) == len(n.ranks)-1 }); err != nil {
			return err
		}
		r.got = nil
		return r.flushed()
	})
}

func deathIsACut(t *testing.T, n *net) {
	contact(t, n)
	const dead = 2
	n.kill(dead)
	var rest []*rank
	for _, r := range n.ranks {
		if r.id != dead {
			rest = append(rest, r)
		}
	}
	all(t, rest, func(r *rank) error {
		if err := r.until("the death", func() bool { return r.lost[dead] != nil }); err != nil {
			return err
		}
		if err := r.lost[dead]; !errors.Is(err, transport.ErrCut) || errors.Is(err, transport.ErrGone) {
			return fmt.Errorf("rank %d: lost the dead rank: %v, want %v", r.id, err, transport.ErrCut)
		}
		if len(r.lost) != 1 {
			return fmt.Errorf("rank %d: lost %v, want only rank %d", r.id, r.lost, dead)
		}
		return nil
	})
}

func deathGivesBuffersBack(t *testing.T, n *net) {
	contact(t, n)
	r := n.ranks[0]
	for i := range 4 {
		r.post(1, i, large)
	}
	due := len(r.due)
	n.kill(1)
	if err := r.until("the buffers", func() bool { return len(r.due) == 0 && r.lost[1] != nil }); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, err := range r.sent {
		if err != nil {
			failed++
		}
	}
	if due == 0 || failed == 0 {
		t.Errorf("of %d buffers due, %d were given back with an error: want some", due, failed)
	}
	if !r.send(1, transport.Header{Kind: transport.Eager}, make([]byte, large), 99) {
		t.Error("a frame to a dead rank was taken in")
	}
}

func deadBeforeContact(t *testing.T, n *net) {
	n.kill(1)
	r := n.ranks[0]
	r.post(1, 0, 10)
	if err := r.until("the loss", func() bool { return r.lost[1] != nil }); err != nil {
		t.Fatal(err)
	}
	if errors.Is(r.lost[1], transport.ErrGone) {
		t.Errorf("lost a rank that died: %v", r.lost[1])
	}
}

// A still counts frames and allocates nothing.
type still struct {
	frames int
	memory []byte
}

func (s *still) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	s.frames++
	return mem.Bytes(s.memory[:h.Len]), 1
}
func (s *still) Filled(uint64) mem.Buffer { return mem.Buffer{} }

func noAllocation(t *testing.T, n *net) {
	if raceDetector {
		t.Skip("allocations mean nothing under the race detector")
	}
	contact(t, n)
	// The ranks' own bookkeeping allocates: bypass it.
	var arrived [2]int
	for _, r := range n.ranks {
		r.quiet = &still{memory: make([]byte, 1<<20)}
	}
	payload := mem.Bytes(make([]byte, 1<<20))
	h := transport.Header{Kind: transport.Eager}
	round := func(size int) {
		for _, r := range n.ranks {
			r.Send(1-r.id, &h, payload.Slice(0, size), 1)
		}
		for i := range arrived {
			arrived[i]++
		}
		for n.ranks[0].quiet.frames < arrived[0] || n.ranks[1].quiet.frames < arrived[1] {
			n.ranks[0].Poll(1)
			n.ranks[1].Poll(0)
		}
	}
	for _, size := range []int{0, 8, 5000, 1 << 20} {
		if got := testing.AllocsPerRun(100, func() { round(size) }); got != 0 {
			t.Errorf("%v allocations for a message of %d bytes each way", got, size)
		}
	}
}
