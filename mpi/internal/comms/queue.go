package comms

import (
	"context"
	"sync"

	"gompi/internal/core"
)

// A queue runs calls that consist of several calls of the engine, in the order in which they were
// made, on a goroutine if they are nonblocking.
type queue struct {
	mu      sync.Mutex
	calls   []func()
	running bool
}

// do runs a blocking call after the calls started before it, on the caller's goroutine. The wait
// for its turn needs a communicator, c.
func (q *queue) do(c *core.Comm, steps func(context.Context) error) error {
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return steps(Forever)
	}
	turn, over := c.Promise(), make(chan struct{})
	q.calls = append(q.calls, func() {
		c.Complete(turn, nil)
		<-over
	})
	q.mu.Unlock()
	defer close(over)
	if _, err := turn.Wait(Forever); err != nil {
		return err
	}
	return steps(Forever)
}

// behind has f called after the calls that were started, and reports whether there are any.
// Without such calls behind does nothing.
func (q *queue) behind(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running {
		q.calls = append(q.calls, f)
	}
	return q.running
}

// start starts a call, and returns its request, which is of c.
func (q *queue) start(c *core.Comm, steps func(context.Context) error) core.Request {
	r := c.Promise()
	q.push(func() { c.Complete(r, steps(InBackground)) })
	return r
}

func (q *queue) push(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, f)
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *queue) run() {
	for {
		q.mu.Lock()
		if len(q.calls) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		f := q.calls[0]
		q.calls = q.calls[1:]
		q.mu.Unlock()
		f()
	}
}

// Do runs a blocking collective of an intercommunicator.
func (x *Inter) Do(steps func(context.Context) error) error { return x.queue.do(x.Both, steps) }

// Enqueue starts a call.
func (x *Inter) Enqueue(steps func(context.Context) error) core.Request {
	return x.queue.start(x.Both, steps)
}
