package comms

import (
	"gompi/comm"
	"gompi/comm/internal/door"
)

// A collective of an intercommunicator is several of comm, in order: they run one after the other,
// on a goroutine if they are nonblocking.

// Do runs a blocking collective, behind those that were started.
func (x *Inter) Do(steps func() error) error {
	x.mu.Lock()
	if !x.running {
		x.mu.Unlock()
		return steps()
	}
	x.mu.Unlock()
	over := make(chan error, 1)
	x.push(func() { over <- steps() })
	return <-over
}

// Enqueue starts a collective, and returns the request for it.
func (x *Inter) Enqueue(steps func() error) comm.Request {
	d := door.Of[comm.Request](x.Both)
	r := d.Promise()
	x.push(func() { d.Complete(r, steps()) })
	return r
}

func (x *Inter) push(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, f)
	if !x.running {
		x.running = true
		go x.run()
	}
}

func (x *Inter) run() {
	for {
		x.mu.Lock()
		if len(x.queue) == 0 {
			x.running = false
			x.mu.Unlock()
			return
		}
		f := x.queue[0]
		x.queue = x.queue[1:]
		x.mu.Unlock()
		f()
	}
}
