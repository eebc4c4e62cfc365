package remote

import (
	"bytes"
	"sync"
	"time"
)

// An Outbox writes posted data to a process, in order, in a goroutine that runs as long as data
// is queued. Any goroutine may call its methods.
type Outbox struct {
	to *Process

	mu      sync.Mutex
	queue   [][]byte
	queued  int  // bytes in queue
	short   bool // the last of queue holds short data, and may grow
	writing bool
	closing bool       // close the process after the last write
	idle    *sync.Cond // signalled when no data is queued or being written
}

// NewOutbox returns an Outbox that writes to to.In.
func NewOutbox(to *Process) *Outbox {
	o := &Outbox{to: to}
	o.idle = sync.NewCond(&o.mu)
	return o
}

// Post does not copy data of at least long bytes: the cards of all ranks go to many hosts at
// once.
const long = 16 << 10

// Post queues b, which must not change afterwards, and returns the number of queued bytes. It
// does not block. Undeliverable data is dropped: the reader of the process notices its end.
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

// Close closes the process, by its Close, once all queued data is written.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.run()
}

// run starts the writer unless one is running.
func (o *Outbox) run() {
	if !o.writing {
		o.writing = true
		go o.write()
	}
}

// write writes until the queue is empty.
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

// Flush waits until all data has been written, at most for limit.
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
