package exec

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/progress"
	"gompi/internal/core/round"
	"gompi/internal/fifo"
	"gompi/internal/mem"
)

// ErrConcurrent: two goroutines were inside blocking collectives of a communicator; Dup it instead.
var ErrConcurrent = errors.New("another goroutine is inside a collective of this communicator; use Dup")

// A Queue runs the collectives of a communicator one at a time, in the order of their calls. A
// blocking collective runs on its caller's goroutine, so that the caller can recover from a panic
// of its operator. Nonblocking collectives queue, and a new goroutine runs them. If a caller waits
// for any of them before that goroutine has begun, the caller runs them itself, since a new
// goroutine's thread takes 20 to 100 us to start. A blocking collective behind them queues too, and
// ends the new goroutine when it is next. While a collective runs, nothing is locked: it may call
// functions of the user's and devices, which may block, panic or call gompi.
type Queue struct {
	Engine  *message.Engine
	Ch      *message.Channel
	Round   *round.Round
	Exec    *Exec
	Suspect *atomic.Bool // is set when a collective has failed
	Closed  atomic.Bool  // the communicator is closed, or is being closed

	state    atomic.Uint32
	performs bool // a collective is being performed; owned by its goroutine

	mu       sync.Mutex // guards the fields below, which are valid while state is contended
	blocking bool       // a goroutine is inside a blocking collective
	running  bool       // a collective runs now, or a goroutine is about to run a collective
	open     bool       // the first goroutine to come runs the queued collectives
	queue    fifo.Queue[queuedOp]
	work     func() // serve, made once
	last     func() // to be called when nothing is left to do
}

// A queuedOp waits for earlier collectives. h is done when it is over, or a blocking one may begin.
type queuedOp struct {
	h        message.Handle
	o        call.Call
	blocking bool // its caller runs the collective
}

// The states of a Queue. Nearly always a goroutine makes blocking calls one after the other: the
// state then changes between idle and direct, without a lock.
const (
	idle      = iota
	direct    // a blocking collective runs, and nothing is queued
	contended // the fields below the lock are valid
)

// lockSlow takes the lock and makes the fields valid.
func (q *Queue) lockSlow() {
	q.mu.Lock()
	for q.state.Load() != contended {
		if q.state.CompareAndSwap(direct, contended) {
			q.blocking, q.running = true, true
		}
		q.state.CompareAndSwap(idle, contended)
	}
}

// unlockSlow gives the lock back, and ends the contended state if nothing is left to do.
func (q *Queue) unlockSlow() {
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

// Begin begins a blocking collective, if none runs or waits, and returns false otherwise.
func (q *Queue) Begin() bool { return q.state.CompareAndSwap(idle, direct) }

// End ends a blocking collective, and lets the next begin.
func (q *Queue) End() {
	if q.state.CompareAndSwap(direct, idle) {
		return
	}
	q.mu.Lock()
	q.blocking = false
	q.next()
	q.unlockSlow()
}

// EndOf ends a blocking collective, whose Perform may have panicked.
func (q *Queue) EndOf(o *call.Call) {
	q.unwind(o)
	q.End()
}

// WhenOver calls f as soon as no collective runs or waits. Callers call WhenOver once.
func (q *Queue) WhenOver(f func()) {
	q.lockSlow()
	q.last = f
	q.unlockSlow()
}

// WhenIdle calls f if no collective runs or waits. None begins meanwhile.
func (q *Queue) WhenIdle(f func()) {
	q.lockSlow()
	if !q.blocking && !q.running {
		f()
	}
	q.unlockSlow()
}

// Run runs o for a blocking call, after queued calls. Where nothing else runs, Begin is faster.
func (q *Queue) Run(ctx context.Context, o *call.Call) error {
	q.lockSlow()
	if q.blocking {
		q.mu.Unlock()
		if q.Closed.Load() {
			return liveness.ErrClosed // Close may be running
		}
		return ErrConcurrent
	}
	q.blocking = true
	q.Round.Recall()
	var begins message.Handle
	if q.running {
		begins = q.push(o, true)
	}
	q.running = true
	q.mu.Unlock()
	defer q.EndOf(o)
	if err := q.wait(ctx, begins, o); err != nil {
		return err
	}
	return q.Perform(ctx, o, progress.PlaceOf(ctx))
}

// wait waits until a blocking call may begin. Other ranks wait for this rank, so giving up breaks
// the communicator.
func (q *Queue) wait(ctx context.Context, begins message.Handle, o *call.Call) error {
	if ctx.Done() == nil && !progress.PlaceOf(ctx).Background {
		q.Help(begins)
	}
	_, may, err := q.Engine.Wait(ctx, begins)
	if !may {
		q.Ch.Break("gave up in " + o.String() + ": " + err.Error())
		q.Engine.Wait(context.Background(), begins) // soon, since earlier ones have failed
	}
	return err
}

// Enqueue queues o for a nonblocking call.
func (q *Queue) Enqueue(o *call.Call) message.Handle {
	q.lockSlow()
	defer q.mu.Unlock()
	q.Round.Recall()
	h := q.push(o, false)
	if !q.running {
		q.next()
	}
	return h
}

func (q *Queue) push(o *call.Call, blocking bool) message.Handle {
	h := q.Engine.Expect(message.Handle{})
	q.queue.Push(queuedOp{h, *o, blocking})
	return h
}

// next starts a goroutine that runs the queued collectives, if there are any.
func (q *Queue) next() {
	if q.running = !q.queue.Empty(); !q.running {
		return
	}
	q.open = true
	if q.work == nil {
		q.work = func() { q.serve(message.Handle{}, true) }
	}
	go q.work() // ends when the queue is empty, when a blocking one is next, or if others were faster
}

// Help runs queued collectives, up to the collective that h names, unless another goroutine does.
// The caller waits for h.
func (q *Queue) Help(h message.Handle) { q.serve(h, false) }

// serve runs queued collectives, up to a blocking collective, or to the collective named by last.
func (q *Queue) serve(last message.Handle, quiet bool) {
	q.mu.Lock()
	if !q.open || !quiet && last.Done() {
		q.mu.Unlock()
		return
	}
	q.open = false
	defer q.passOn() // also if a device panics
	for over := false; !over && !q.queue.Empty() && !q.blockingNext(); {
		now := q.queue.Pop()
		q.runQueued(&now, quiet)
		over = now.h == last
	}
}

// runQueued runs a nonblocking collective. The lock is held on entry and on return.
func (q *Queue) runQueued(now *queuedOp, quiet bool) {
	var err error
	ended := false
	q.mu.Unlock()
	defer func() {
		if q.mu.Lock(); !ended {
			err = q.Ch.Err()
		}
		q.Engine.Complete(now.h, message.Status{}, err)
	}()
	defer q.unwind(&now.o)
	err = q.Perform(context.Background(), &now.o, progress.Place{Background: quiet})
	ended = true
}

// passOn lets the next collective run, if any: a blocking one on its caller's goroutine.
func (q *Queue) passOn() {
	if q.blockingNext() {
		q.Engine.Complete(q.queue.Pop().h, message.Status{}, nil)
		q.mu.Unlock()
		return
	}
	q.next()
	q.unlockSlow()
}

func (q *Queue) blockingNext() bool { return !q.queue.Empty() && q.queue.Items()[0].blocking }

// Idle reports whether no collective runs or waits.
func (q *Queue) Idle() bool { return q.state.Load() == idle }

// Perform runs o in a round, which numbers o. Its caller defers unwind: a short collective can
// afford only a single deferred call.
func (q *Queue) Perform(ctx context.Context, o *call.Call, at progress.Place) error {
	if at.Of != calls.None {
		o.Of = at.Of
	}
	if at.Background && o.Op.Program {
		o = q.handOver(o)
	}
	q.performs = true
	err := q.Round.Begin(ctx, &o.Fingerprint, o.Bytes(), at.Background)
	if err == nil {
		err = q.Round.End(q.Exec.Do(o))
	}
	if err != nil { // if the error is this rank's alone, the others wait in vain
		q.Suspect.Store(true)
		q.Ch.Break("failed in " + o.String() + ": " + err.Error())
	}
	q.performs = false
	return err
}

// handOver returns a copy of o whose operator runs on a thread of the program, inside any MPI call
// of that thread.
func (q *Queue) handOver(o *call.Call) *call.Call {
	handed, combine := *o, o.Op.Func
	handed.Op.Func = func(acc, in mem.Buffer) { q.Engine.Progress.Callback(func() { combine(acc, in) }) }
	return &handed
}

// unwind ends o if Perform has not returned: an operator or device panicked or ended its goroutine.
// Other ranks wait, so the communicator breaks; a caller that recovers may use others.
func (q *Queue) unwind(o *call.Call) {
	if !q.performs {
		return
	}
	q.performs = false
	q.Suspect.Store(true)
	q.Ch.Break("panicked, or ended its goroutine, in " + o.String())
	q.Round.End(nil)
}
