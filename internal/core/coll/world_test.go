package coll

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A world is ranks as goroutines, with a Peers each that counts steps: a message arrives a step
// after it was sent, and a Wait ends no earlier than its messages arrive. Messages of a
// pair are matched in order, so that counts depend on the algorithm alone and
// not on how goroutines are scheduled. Package sim tells what they cost.
type world struct {
	ranks []*rank
	// rendezvous makes a send wait for its receive, and lets the receiver read
	// the sender's buffer.
	rendezvous bool
}

// A rank implements Peers.
type rank struct {
	w  *world
	me int

	mu    sync.Mutex
	news  sync.Cond // a parcel came, or one of mine was taken
	inbox map[int][]*parcel

	sends    []*parcel
	receives []receive
	err      error
	bill
}

// A bill is what a rank has used up.
type bill struct {
	step     int // how far it is
	messages int
	bytes    int64
}

type parcel struct {
	to     int
	b      mem.Buffer
	arrive int // the step
	from   *rank
	taken  bool // under from.mu
}

type receive struct {
	from     int
	dst, own mem.Buffer
	op       call.Op
	left     bool
	p        *parcel
}

func newWorld(size int, rendezvous bool) *world {
	w := &world{rendezvous: rendezvous}
	for i := range size {
		r := &rank{w: w, me: i, inbox: map[int][]*parcel{}}
		r.news.L = &r.mu
		w.ranks = append(w.ranks, r)
	}
	return w
}

// run lets every rank run body, in a bubble: if they all wait for each other,
// the test fails at once, with their stacks.
func (w *world) run(t *testing.T, body func(r *rank) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for _, r := range w.ranks {
			wg.Go(func() {
				if err := body(r); err != nil {
					t.Errorf("rank %d: %v", r.me, err)
				}
			})
		}
		wg.Wait()
		for _, r := range w.ranks {
			if len(r.sends)+len(r.receives) > 0 {
				t.Errorf("rank %d of %d left %d sends and %d receives without waiting", r.me, len(w.ranks),
					len(r.sends), len(r.receives))
			}
			for from, q := range r.inbox {
				if len(q) > 0 {
					t.Errorf("rank %d of %d never received %d messages from rank %d", r.me, len(w.ranks), len(q), from)
				}
			}
		}
	})
}

func (r *rank) Rank() int { return r.me }
func (r *rank) Size() int { return len(r.w.ranks) }

func (r *rank) Isend(to int, b mem.Buffer) {
	if to == r.me {
		r.err = fmt.Errorf("message to oneself")
		return
	}
	p := &parcel{to: to, b: b, from: r, arrive: r.send(b.Size())}
	if !r.w.rendezvous && b.IsHost() {
		p.b = clone(b)
	}
	r.sends = append(r.sends, p)
	q := r.w.ranks[to]
	q.mu.Lock()
	q.inbox[r.me] = append(q.inbox[r.me], p)
	q.mu.Unlock()
	q.news.Signal()
}

func (r *rank) Irecv(from int, b mem.Buffer) {
	if b.IsHost() && b.Len() > 0 {
		r.beforeSends(from)
	}
	r.receives = append(r.receives, receive{from: from, dst: b})
}

// beforeSends checks that nothing was sent to a rank, since the last Wait, before a receive from it
// is started: see Peers.
func (r *rank) beforeSends(from int) {
	if slices.ContainsFunc(r.sends, func(p *parcel) bool { return p.to == from }) {
		r.err = fmt.Errorf("it sends to rank %d before it starts to receive from it", from)
	}
}

func (r *rank) IrecvReduce(from int, dst, own mem.Buffer, op call.Op, left bool) {
	if own.Len() > 0 {
		r.beforeSends(from)
	}
	if dst.Len() != own.Len() || mem.Overlap(dst, own) && !mem.Same(dst, own) {
		r.err = fmt.Errorf("IrecvReduce: dst and own are neither the same nor apart")
	}
	r.receives = append(r.receives, receive{from: from, dst: dst, own: own, op: op, left: left})
}

func (r *rank) Scratch(like mem.Buffer, n int) mem.Buffer {
	b := like.Slice(0, 0)
	if n == 0 {
		return b
	}
	b, err := like.Space().Alloc(like.Type(), n)
	if err != nil {
		r.err = err
	}
	if b.IsHost() {
		for i, s := 0, b.HostSlice(); i < len(s); i++ {
			s[i] = 0xa5
		}
	}
	return b
}

func (r *rank) Wait() error {
	defer func() { r.sends, r.receives = r.sends[:0], r.receives[:0] }()
	if r.err == nil {
		r.err = r.checkBuffers()
	}
	if r.err != nil {
		return r.err
	}
	for i := range r.receives {
		r.receives[i].p = r.next(r.receives[i].from)
	}
	for _, c := range r.receives {
		r.step = max(r.step, c.p.arrive)
		if err := c.deliver(); err != nil && r.err == nil {
			r.err = fmt.Errorf("message from %d: %w", c.from, err)
		}
		c.p.from.mu.Lock()
		c.p.taken = true
		c.p.from.mu.Unlock()
		c.p.from.news.Signal()
	}
	for _, p := range r.sends {
		r.step = max(r.step, p.arrive)
	}
	if r.w.rendezvous {
		r.mu.Lock()
		for _, p := range r.sends {
			for !p.taken {
				r.news.Wait()
			}
		}
		r.mu.Unlock()
	}
	return r.err
}

// next waits for the next message of a rank.
func (r *rank) next(from int) *parcel {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.inbox[from]) == 0 {
		r.news.Wait()
	}
	p := r.inbox[from][0]
	r.inbox[from] = r.inbox[from][1:]
	return p
}

func (c receive) deliver() error {
	if c.p.b.Len() != c.dst.Len() {
		return fmt.Errorf("has %d elements, want %d", c.p.b.Len(), c.dst.Len())
	}
	if !c.dst.IsHost() {
		return nil
	}
	if c.op.Kind == mem.NoOp {
		return move(c.dst, c.p.b)
	}
	if !c.left {
		return c.op.Combine(c.dst, c.own, c.p.b)
	}
	in := clone(c.p.b)
	if err := c.op.Combine(in, in, c.own); err != nil {
		return err
	}
	return move(c.dst, in)
}

// checkBuffers finds buffers that one step writes and also reads or writes
// otherwise.
func (r *rank) checkBuffers() error {
	for i, c := range r.receives {
		for _, s := range r.sends {
			if r.w.rendezvous && mem.Overlap(c.dst, s.b) {
				return fmt.Errorf("receives from %d into a buffer it is sending", c.from)
			}
		}
		for j, d := range r.receives {
			if i != j && (mem.Overlap(c.dst, d.dst) || mem.Overlap(c.dst, d.own)) {
				return fmt.Errorf("receives from %d and %d meet in one buffer", c.from, d.from)
			}
		}
	}
	return nil
}

func clone(b mem.Buffer) mem.Buffer {
	if b.Len() == 0 {
		return b
	}
	return mem.HostBytes(b.Type(), b.Len(), slices.Clone(b.HostSlice()))
}
