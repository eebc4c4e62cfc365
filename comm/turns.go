package comm

import (
	"context"
	"sync"
	"sync/atomic"
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
	queue    []*Request
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
	if !t.blocking && !t.running {
		t.state.Store(idle)
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
		r := c.collective(*o)
		t.push(c, r)
		t.mu.Unlock()
		err := t.wait(ctx, c, r)
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
func (t *turns) wait(ctx context.Context, c *Comm, r *Request) error {
	if err := c.e.Wait(ctx, &r.e); err != nil {
		c.ch.Break("gave up in " + r.op.call.String() + ": " + err.Error())
		c.e.Wait(context.Background(), &r.e) // soon: it may be using the caller's buffers
		return err
	}
	_, err := r.e.Result()
	return err
}

// enqueue queues r for a nonblocking call.
func (t *turns) enqueue(c *Comm, r *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contend()
	t.push(c, r)
	if !t.running {
		t.next(c)
	}
}

func (t *turns) push(c *Comm, r *Request) {
	c.e.Expect(&r.e)
	t.queue = append(t.queue, r)
}

// next lets the next one run, if there is one.
func (t *turns) next(c *Comm) {
	t.running = len(t.queue) > 0
	if t.running {
		go t.drain(c) // ends when the queue is empty
	}
}

// drain runs what is queued.
func (t *turns) drain(c *Comm) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 {
		r := t.queue[0]
		t.queue = append(t.queue[:0], t.queue[1:]...)
		t.mu.Unlock()
		c.e.Complete(&r.e, c.perform(context.Background(), r.op, true))
		t.mu.Lock()
	}
	t.running = false
	t.relax()
}
