package comms

import (
	"sync"

	"gompi/comm"
	"gompi/comm/internal/door"
)

// A queue runs calls that consist of several of comm's one after the other, in the order in which
// they were made, on a goroutine if they are nonblocking.
type queue struct {
	mu      sync.Mutex
	calls   []func()
	running bool
}

// do runs a blocking call, behind those that were started.
func (q *queue) do(steps func() error) error {
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return steps()
	}
	q.mu.Unlock()
	over := make(chan error, 1)
	q.push(func() { over <- steps() })
	return <-over
}

// start starts a call, and returns the request for it, which is of c.
func (q *queue) start(c *comm.Comm, steps func() error) comm.Request {
	d := door.Of[comm.Request](c)
	r := d.Promise()
	q.push(func() { d.Complete(r, steps()) })
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
func (x *Inter) Do(steps func() error) error { return x.queue.do(steps) }

// Enqueue starts one.
func (x *Inter) Enqueue(steps func() error) comm.Request { return x.queue.start(x.Both, steps) }
