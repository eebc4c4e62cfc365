package comm

import (
	"context"
	"sync"
	"sync/atomic"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/internal/fifo"
	"gompi/internal/mem"
)

// opQueue runs the collectives of one communicator one at a time, in the order in which they were
// called. A blocking one runs on its caller's goroutine, which can so recover from a panic of an
// operator of its own. Nonblocking ones queue, and one goroutine runs them. A blocking one behind
// them queues too, and that goroutine ends when it comes to it.
//
// While a collective runs, nothing is locked: it may call functions of the user's and devices,
// which may block, panic or call comm.
type opQueue struct {
	state atomic.Uint32

	mu       sync.Mutex // guards the fields below, which are valid while state is contended
	blocking bool       // a goroutine is inside a blocking collective
	running  bool       // a collective runs now
	queue    fifo.Queue[queuedOp]
	work     func() // drain, made once
	last     func() // to be called when nothing is left to do
}

// A queuedOp is a collective that waits for the ones before it. h is done when it is over, or
// for a blocking one when it may begin.
type queuedOp struct {
	h        engine.Handle
	o        call.Call
	blocking bool // its caller runs it
	at       streamPosition
}

// A streamPosition is where a stream stops for a queuedOp, zero if that is in no stream's order.
type streamPosition struct {
	hold mem.StreamWait
	err  error // why it does not stop
}

// The states of an opQueue. Nearly always one goroutine makes one blocking call after the other:
// the state then changes between idle and direct, without a lock.
const (
	idle      = iota
	direct    // a blocking collective runs, and nothing is behind it
	contended // the fields below the lock are valid
)

// lockSlow takes the lock and makes the fields valid.
func (q *opQueue) lockSlow() {
	q.mu.Lock()
	for q.state.Load() != contended {
		if q.state.CompareAndSwap(direct, contended) {
			q.blocking, q.running = true, true
		}
		q.state.CompareAndSwap(idle, contended)
	}
}

// unlockSlow gives the lock back, and ends the contended state if nothing is left to do.
func (q *opQueue) unlockSlow() {
	var last func()
	if !q.blocking && !q.running {
		q.state.Store(idle)
		last, q.last = q.last, nil
	}
	q.mu.Unlock()
	if last != nil {
		last()
	}
}

// begin begins a blocking collective, if none runs or waits. It returns false otherwise.
func (q *opQueue) begin() bool { return q.state.CompareAndSwap(idle, direct) }

// end ends a blocking collective, and lets the next one begin.
func (q *opQueue) end(c *Comm) {
	if q.state.CompareAndSwap(direct, idle) {
		return
	}
	q.mu.Lock()
	q.blocking = false
	q.next(c)
	q.unlockSlow()
}

// endOf ends a blocking collective, whose perform may have panicked.
func (q *opQueue) endOf(c *Comm, o *call.Call) {
	c.unwind(o)
	q.end(c)
}

// whenOver calls f as soon as no collective runs or waits. It is called once.
func (q *opQueue) whenOver(f func()) {
	q.lockSlow()
	q.last = f
	q.unlockSlow()
}

// run runs o for a blocking call, after those queued before. Where nothing else runs, begin is
// faster.
func (q *opQueue) run(ctx context.Context, c *Comm, o *call.Call) error {
	q.lockSlow()
	if q.blocking {
		q.mu.Unlock()
		if c.shut.Load() {
			return ErrClosed // it may be Close that runs
		}
		return ErrConcurrent
	}
	q.blocking = true
	var begins engine.Handle
	if q.running {
		begins = q.push(c, o, streamPosition{}, true)
	}
	q.running = true
	q.mu.Unlock()
	defer q.endOf(c, o)
	if err := q.wait(ctx, c, begins, o); err != nil {
		return err
	}
	return c.perform(ctx, o, false)
}

// wait waits until a blocking call may begin. Other ranks wait for this one, so to give up breaks
// the communicator.
func (q *opQueue) wait(ctx context.Context, c *Comm, begins engine.Handle, o *call.Call) error {
	_, may, err := c.e.Wait(ctx, begins)
	if !may {
		c.ch.Break("gave up in " + o.String() + ": " + err.Error())
		c.e.Wait(context.Background(), begins) // soon, since those before it have failed
	}
	return err
}

// enqueue queues o for a nonblocking call.
func (q *opQueue) enqueue(c *Comm, o *call.Call, at streamPosition) engine.Handle {
	q.lockSlow()
	defer q.mu.Unlock()
	h := q.push(c, o, at, false)
	if !q.running {
		q.next(c)
	}
	return h
}

func (q *opQueue) push(c *Comm, o *call.Call, at streamPosition, blocking bool) engine.Handle {
	h := c.e.Expect(engine.Handle{})
	q.queue.Push(queuedOp{h, *o, blocking, at})
	return h
}

// next lets the next one run, if there is one.
func (q *opQueue) next(c *Comm) {
	q.running = !q.queue.Empty()
	if q.running {
		if q.work == nil {
			q.work = func() { q.drain(c) }
		}
		go q.work() // ends when the queue is empty, or when it comes to a blocking one
	}
}

// drain runs what is queued, up to a blocking collective.
func (q *opQueue) drain(c *Comm) {
	q.mu.Lock()
	for !q.queue.Empty() {
		now := q.queue.Pop()
		var err error
		if !now.blocking {
			q.mu.Unlock()
			err = now.perform(c)
			q.mu.Lock()
		}
		c.e.Complete(now.h, engine.Status{}, err)
		if now.blocking {
			q.mu.Unlock()
			return
		}
	}
	q.running = false
	q.unlockSlow()
}
