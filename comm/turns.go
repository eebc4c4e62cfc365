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

// turns makes the collectives of one communicator run one at a time, in the
// order in which they were called. A blocking one runs on its caller's goroutine, so
// that whoever calls it can recover from a function of its own that panics.
// Nonblocking ones queue, and one goroutine runs them; a blocking one behind them
// queues too, and that goroutine ends when its turn has come.
//
// While a collective runs, nothing is locked: it may call functions of the user's and
// devices, which may block, panic or call comm.
type turns struct {
	state atomic.Uint32

	mu       sync.Mutex // guards what follows, which counts while state is contended
	blocking bool       // a goroutine is inside a blocking collective
	running  bool       // somebody runs one now
	queue    fifo.Queue[turn]
	work     func() // drain, made once
	last     func() // to be called when nothing is left to do
}

// A turn is a collective that waits for the ones before it. h is done when it is over, or
// for a blocking one when its turn has come.
type turn struct {
	h        engine.Handle
	o        call.Call
	blocking bool // its caller runs it
	at       streamPosition
}

// A streamPosition is where a stream stops for a turn; zero if the turn is in the order
// of none.
type streamPosition struct {
	hold mem.Hold
	err  error // why it does not stop
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

// relax undoes contend when nothing is left to do, and lets go of the lock.
func (t *turns) relax() {
	var last func()
	if !t.blocking && !t.running {
		t.state.Store(idle)
		last, t.last = t.last, nil
	}
	t.mu.Unlock()
	if last != nil {
		last()
	}
}

// begin takes the turn if no collective runs or waits for it.
func (t *turns) begin() bool { return t.state.CompareAndSwap(idle, direct) }

// end gives back the turn that begin took, or ends a blocking collective.
func (t *turns) end(c *Comm) {
	if t.state.CompareAndSwap(direct, idle) {
		return
	}
	t.mu.Lock()
	t.blocking = false
	t.next(c)
	t.relax()
}

// endOf ends a blocking collective, perform of which may not have returned.
func (t *turns) endOf(c *Comm, o *call.Call) {
	c.unwind(o)
	t.end(c)
}

// whenOver calls f as soon as no collective runs or waits for its turn. It is called once.
func (t *turns) whenOver(f func()) {
	t.mu.Lock()
	t.contend()
	t.last = f
	t.relax()
}

// run runs o for a blocking call, when its turn has come. Where nothing else runs, begin takes
// the turn in less time.
func (t *turns) run(ctx context.Context, c *Comm, o *call.Call) error {
	t.mu.Lock()
	t.contend()
	if t.blocking {
		t.mu.Unlock()
		if c.shut.Load() {
			return ErrClosed // it may be Close that has the turn
		}
		return ErrConcurrent
	}
	t.blocking = true
	var turn engine.Handle
	if t.running {
		turn = t.push(c, o, streamPosition{}, true)
	}
	t.running = true
	t.mu.Unlock()
	defer t.endOf(c, o)
	if err := t.wait(ctx, c, turn, o); err != nil {
		return err
	}
	return c.perform(ctx, o, false)
}

// wait waits for a blocking call's turn. The others count on this rank, so giving up
// breaks the communicator.
func (t *turns) wait(ctx context.Context, c *Comm, turn engine.Handle, o *call.Call) error {
	_, come, err := c.e.Wait(ctx, turn)
	if !come {
		c.ch.Break("gave up in " + o.String() + ": " + err.Error())
		c.e.Wait(context.Background(), turn) // soon, since those before it have failed
	}
	return err
}

// enqueue queues o for a nonblocking call.
func (t *turns) enqueue(c *Comm, o *call.Call, at streamPosition) engine.Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.contend()
	h := t.push(c, o, at, false)
	if !t.running {
		t.next(c)
	}
	return h
}

func (t *turns) push(c *Comm, o *call.Call, at streamPosition, blocking bool) engine.Handle {
	h := c.e.Expect(engine.Handle{})
	t.queue.Push(turn{h, *o, blocking, at})
	return h
}

// next lets the next one run, if there is one.
func (t *turns) next(c *Comm) {
	t.running = !t.queue.Empty()
	if t.running {
		if t.work == nil {
			t.work = func() { t.drain(c) }
		}
		go t.work() // ends when the queue is empty, or with the turn of a blocking one
	}
}

// drain runs what is queued, up to a blocking collective.
func (t *turns) drain(c *Comm) {
	t.mu.Lock()
	for !t.queue.Empty() {
		now := t.queue.Pop()
		var err error
		if !now.blocking {
			t.mu.Unlock()
			err = now.perform(c)
			t.mu.Lock()
		}
		c.e.Complete(now.h, engine.Status{}, err)
		if now.blocking {
			t.mu.Unlock()
			return
		}
	}
	t.running = false
	t.relax()
}
