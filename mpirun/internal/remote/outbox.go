package remote

import (
	"bytes"
	"sync"
	"time"
)

// An Outbox writes what is posted to it to a process, in order, in a goroutine that runs while
// there is something to write. Its methods may be called from any goroutine.
type Outbox struct {
	to *Process

	mu      sync.Mutex
	queue   [][]byte
	queued  int  // bytes in it
	short   bool // the last of queue is of short ones, to which others may be appended
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

// Post does not copy what has at least long bytes: the cards of all ranks go to many hosts at once.
const long = 16 << 10

// Post queues b, which must not change any more, and returns how many bytes are queued. It does not
// block. What cannot be written is dropped: whoever reads from the process notices that it is gone.
func (o *Outbox) Post(b []byte) (queued int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch last := len(o.queue) - 1; {
	case len(b) >= long:
		o.queue, o.short = append(o.queue, b), false
	case o.short:
		o.queue[last] = append(o.queue[last], b...)
	default:
		o.queue, o.short = append(o.queue, bytes.Clone(b)), true
	}
	o.queued += len(b)
	o.run()
	return o.queued
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
		o.queue, o.queued, o.short = nil, 0, false
		o.mu.Unlock()
		for _, b := range queue {
			o.to.In.Write(b) // an error means that the process is gone
		}
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
