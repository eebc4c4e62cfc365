package remote

import (
	"sync"
	"time"
)

// An Outbox writes what is posted to it to a process, in order, in a goroutine that runs while
// there is something to write. Its methods may be called from any goroutine.
type Outbox struct {
	to *Process

	mu      sync.Mutex
	queue   []byte
	writing bool
	closing bool       // the process is to be closed when all is written
	idle    *sync.Cond // signalled when nothing is queued or being written
}

// NewOutbox returns an Outbox that writes to to.In.
func NewOutbox(to *Process) *Outbox {
	o := &Outbox{to: to}
	o.idle = sync.NewCond(&o.mu)
	return o
}

// Post queues b, and returns how many bytes are queued. It does not block. What cannot be written
// is dropped: whoever reads from the process notices that it is gone.
func (o *Outbox) Post(b []byte) (queued int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, b...)
	o.run()
	return len(o.queue)
}

// Close closes the process, as its Close does, once all that is queued is written.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.run()
}

// run writes, unless that is being done.
func (o *Outbox) run() {
	if !o.writing {
		o.writing = true
		go o.write()
	}
}

// write writes until nothing is queued.
func (o *Outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		queue := o.queue
		o.queue = nil
		o.mu.Unlock()
		o.to.In.Write(queue) // an error means that the process is gone
		o.mu.Lock()
	}
	if o.closing {
		o.to.Close()
	}
	o.writing = false
	o.idle.Broadcast()
}

// Flush waits until everything has been written, at most for limit.
func (o *Outbox) Flush(limit time.Duration) {
	expired := false
	timer := time.AfterFunc(limit, func() {
		o.mu.Lock()
		expired = true
		o.idle.Broadcast()
		o.mu.Unlock()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing && !expired {
		o.idle.Wait()
	}
}
