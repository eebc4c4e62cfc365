package comm

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// turns makes the collectives of one communicator run one at a time, in the
// order in which they were called. A blocking one that finds nothing before it
// runs on its caller's goroutine. Nonblocking ones queue, and one goroutine runs
// them; a blocking one behind them queues too.
type turns struct {
	state atomic.Uint32

	mu       sync.Mutex // guards what follows, which counts while state is contended
	blocking bool       // a goroutine is inside a blocking collective
	running  bool       // somebody runs one now
	whole    int        // turns that run or wait, but those begun
	queue    []turn
	work     func() // drain, made once
	last     func() // to be called when nothing is left to do
}

// A turn is a collective that waits for the ones before it.
type turn struct {
	h engine.Handle
	o operation
	place
}

// A place is that of a turn in the order of a stream, if it has one.
type place struct {
	task  *task    // that the devices' library was given ahead, or nil
	begun bool     // the library will do that, or has failed, and the stream goes on
	hold  mem.Hold // else it stops here
	err   error    // why it does not
}

// The states of turns. Nearly always one goroutine makes one blocking call after the
// other: that goes between idle and direct, without a lock.
const (
	idle      = iota
	direct    // a blocking collective runs, and nothing is behind it
	contended // blocking, running and queue tell
)

// contend makes the fields count. The lock is held.
func (t *turns) contend() {
	for t.state.Load() != contended {
		if t.state.CompareAndSwap(direct, contended) {
			t.blocking, t.running = true, true
		}
		t.state.CompareAndSwap(idle, contended)
	}
}

// relax undoes contend when nothing is left to do. The lock is held.
func (t *turns) relax() {
	if t.blocking || t.running {
		return
	}
	t.state.Store(idle)
	if f := t.last; f != nil {
		t.last = nil
		f()
	}
}

// run runs o for a blocking call.
func (t *turns) run(ctx context.Context, c *Comm, o *operation) error {
	if !t.state.CompareAndSwap(idle, direct) {
		return t.runContended(ctx, c, o)
	}
	err := c.perform(ctx, o, false)
	if !t.state.CompareAndSwap(direct, idle) {
		t.mu.Lock()
		t.leave(c)
		t.mu.Unlock()
	}
	return err
}

// over reports whether no collective runs or waits for its turn.
func (t *turns) over() bool { return t.state.Load() == idle }

// whenOver calls f as soon as none does. It is called once.
func (t *turns) whenOver(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contend()
	t.last = f
	t.relax()
}

// leave ends a blocking collective that ran on its caller's goroutine.
func (t *turns) leave(c *Comm) {
	t.blocking = false
	t.next(c)
	t.relax()
}

func (t *turns) runContended(ctx context.Context, c *Comm, o *operation) error {
	t.mu.Lock()
	t.contend()
	if t.blocking {
		t.mu.Unlock()
		return ErrConcurrent
	}
	t.blocking = true
	if t.running {
		h := t.push(c, o, place{})
		t.mu.Unlock()
		err := t.wait(ctx, c, h, o)
		t.mu.Lock()
		t.blocking = false
		t.relax()
		t.mu.Unlock()
		return err
	}
	t.running = true
	t.mu.Unlock()
	err := c.perform(ctx, o, false)
	t.mu.Lock()
	t.leave(c)
	t.mu.Unlock()
	return err
}

// wait waits for a blocking call's turn and end. The others count on this rank,
// so giving up breaks the communicator.
func (t *turns) wait(ctx context.Context, c *Comm, h engine.Handle, o *operation) error {
	_, over, err := c.e.Wait(ctx, h)
	if !over {
		c.ch.Break("gave up in " + o.call.String() + ": " + err.Error())
		c.e.Wait(context.Background(), h) // soon: it may be using the caller's buffers
	}
	return err
}

// allBegun reports whether nothing runs, or waits for its turn, but what is begun.
func (t *turns) allBegun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Load() != direct && !t.blocking && t.whole == 0
}

// enqueue queues o for a nonblocking call.
func (t *turns) enqueue(c *Comm, o *operation, at place) engine.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contend()
	h := t.push(c, o, at)
	if !t.running {
		t.next(c)
	}
	return h
}

func (t *turns) push(c *Comm, o *operation, at place) engine.Handle {
	h := c.e.Expect(engine.Handle{})
	t.queue = append(t.queue, turn{h, *o, at})
	if !at.begun {
		t.whole++
	}
	return h
}

// next lets the next one run, if there is one.
func (t *turns) next(c *Comm) {
	t.running = len(t.queue) > 0
	if t.running {
		if t.work == nil {
			t.work = func() { t.drain(c) }
		}
		go t.work() // ends when the queue is empty
	}
}

// drain runs what is queued.
func (t *turns) drain(c *Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 {
		now := t.queue[0]
		t.queue = slices.Delete(t.queue, 0, 1)
		t.mu.Unlock()
		err := now.perform(c)
		t.mu.Lock()
		if !now.begun {
			t.whole--
		}
		c.e.Complete(now.h, engine.Status{}, err)
	}
	t.running = false
	t.relax()
}
