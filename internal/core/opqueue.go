package core

import (
	"context"
	"sync"
	"sync/atomic"

	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/progress"
	"gompi/internal/fifo"
)

// opQueue runs the collectives of a communicator one at a time, in the order of their calls. A
// blocking collective runs on its caller's goroutine, so that the caller can recover from a panic
// of its operator. Nonblocking collectives queue, and a new goroutine runs them. If a caller waits
// for any of them before that goroutine has begun, the caller runs them itself, since a new
// goroutine's thread takes 20 to 100 us to start. A blocking collective behind them queues too. The
// new goroutine ends when the next queued collective is blocking.
//
// While a collective runs, nothing is locked: it may call functions of the user's and devices,
// which may block, panic or call gompi.
type opQueue struct {
	state atomic.Uint32

	mu       sync.Mutex // guards the fields below, which are valid while state is contended
	blocking bool       // a goroutine is inside a blocking collective
	running  bool       // a collective runs now, or a goroutine is about to run a collective
	open     bool       // the first goroutine to come runs the queued collectives
	queue    fifo.Queue[queuedOp]
	work     func() // serve, made once
	last     func() // to be called when nothing is left to do
}

// A queuedOp is a collective that waits for earlier ones. h is done when the collective is over,
// or when a blocking collective may begin.
type queuedOp struct {
	h        message.Handle
	o        call.Call
	blocking bool // its caller runs the collective
}

// The states of an opQueue. Nearly always a goroutine makes blocking calls one after the other:
// the state then changes between idle and direct, without a lock.
const (
	idle      = iota
	direct    // a blocking collective runs, and nothing is queued
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

// begin begins a blocking collective, if none runs or waits, and returns false otherwise.
func (q *opQueue) begin() bool { return q.state.CompareAndSwap(idle, direct) }

// end ends a blocking collective, and lets the next begin.
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

// whenOver calls f as soon as no collective runs or waits. Callers call whenOver once.
func (q *opQueue) whenOver(f func()) {
	q.lockSlow()
	q.last = f
	q.unlockSlow()
}

// whenIdle calls f if no collective runs or waits. None begins meanwhile.
func (q *opQueue) whenIdle(f func()) {
	q.lockSlow()
	if !q.blocking && !q.running {
		f()
	}
	q.unlockSlow()
}

// run runs o for a blocking call, after earlier queued calls. Where nothing else runs, begin is
// faster.
func (q *opQueue) run(ctx context.Context, c *Comm, o *call.Call) error {
	q.lockSlow()
	if q.blocking {
		q.mu.Unlock()
		if c.shut.Load() {
			return ErrClosed // Close may be running
		}
		return ErrConcurrent
	}
	q.blocking = true
	c.round.Recall()
	var begins message.Handle
	if q.running {
		begins = q.push(c, o, true)
	}
	q.running = true
	q.mu.Unlock()
	defer q.endOf(c, o)
	if err := q.wait(ctx, c, begins, o); err != nil {
		return err
	}
	return c.perform(ctx, o, progress.PlaceOf(ctx))
}

// wait waits until a blocking call may begin. Other ranks wait for this rank, so giving up breaks
// the communicator.
func (q *opQueue) wait(ctx context.Context, c *Comm, begins message.Handle, o *call.Call) error {
	if ctx.Done() == nil && !progress.PlaceOf(ctx).Background {
		q.help(c, begins)
	}
	_, may, err := c.e.Wait(ctx, begins)
	if !may {
		c.ch.Break("gave up in " + o.String() + ": " + err.Error())
		c.e.Wait(context.Background(), begins) // soon, since earlier ones have failed
	}
	return err
}

// enqueue queues o for a nonblocking call.
func (q *opQueue) enqueue(c *Comm, o *call.Call) message.Handle {
	q.lockSlow()
	defer q.mu.Unlock()
	c.round.Recall()
	h := q.push(c, o, false)
	if !q.running {
		q.next(c)
	}
	return h
}

func (q *opQueue) push(c *Comm, o *call.Call, blocking bool) message.Handle {
	h := c.e.Expect(message.Handle{})
	q.queue.Push(queuedOp{h, *o, blocking})
	return h
}

// next lets the next collective run, if there is one.
func (q *opQueue) next(c *Comm) {
	if q.running = !q.queue.Empty(); q.running {
		q.start(c)
	}
}

// start starts a goroutine that runs the queued collectives.
func (q *opQueue) start(c *Comm) {
	q.open = true
	if q.work == nil {
		q.work = func() { q.serve(c, message.Handle{}, true) }
	}
	go q.work() // ends when the queue is empty, when a blocking one is next, or if others were faster
}

// help runs queued collectives, up to the collective that h names, unless another goroutine does.
// The caller waits for h.
func (q *opQueue) help(c *Comm, h message.Handle) { q.serve(c, h, false) }

// serve runs queued collectives, up to a blocking collective, or to the collective named by last.
func (q *opQueue) serve(c *Comm, last message.Handle, quiet bool) {
	q.mu.Lock()
	if !q.open || !quiet && last.Done() {
		q.mu.Unlock()
		return
	}
	q.open = false
	defer q.passOn(c) // also if a device panics
	for over := false; !over && !q.queue.Empty() && !q.blockingNext(); {
		now := q.queue.Pop()
		q.runQueued(c, &now, quiet)
		over = now.h == last
	}
}

// runQueued runs a nonblocking collective. The lock is held on entry and on return.
func (q *opQueue) runQueued(c *Comm, now *queuedOp, quiet bool) {
	var err error
	ended := false
	q.mu.Unlock()
	defer func() {
		if q.mu.Lock(); !ended {
			err = c.ch.Err()
		}
		c.e.Complete(now.h, message.Status{}, err)
	}()
	defer c.unwind(&now.o)
	err = c.perform(context.Background(), &now.o, progress.Place{Background: quiet})
	ended = true
}

// passOn lets the next collective run, if there is one: a blocking collective on its caller's
// goroutine.
func (q *opQueue) passOn(c *Comm) {
	if q.blockingNext() {
		c.e.Complete(q.queue.Pop().h, message.Status{}, nil)
		q.mu.Unlock()
		return
	}
	q.next(c)
	q.unlockSlow()
}

func (q *opQueue) blockingNext() bool { return !q.queue.Empty() && q.queue.Items()[0].blocking }
