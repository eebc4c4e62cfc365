package rank0

import (
	"net"
	"sync"
	"time"
)

// An outbox sends frames to one connection. Its senders do not wait.
type outbox struct {
	conn    net.Conn
	before  func() // called before each write; may be nil
	mu      sync.Mutex
	queue   []byte
	writing bool
	done    chan struct{} // closed when all frames have been written
}

// maxQueued bounds the bytes queued for a rank that does not read.
const maxQueued = 256 << 20

func (o *outbox) send(frame []byte) {
	if len(frame) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > maxQueued {
		o.conn.Close()
		return
	}
	o.queue = append(o.queue, frame...)
	if !o.writing {
		o.writing, o.done = true, make(chan struct{})
		go o.write() // until nothing is queued
	}
}

func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		queue := o.queue
		o.queue = nil
		o.mu.Unlock()
		if o.before != nil {
			o.before()
		}
		o.conn.Write(queue) // an error shows when the connection is read
		o.mu.Lock()
	}
	o.writing = false
	close(o.done)
}

// flush waits until everything has been written, at most for limit.
func (o *outbox) flush(limit time.Duration) {
	o.mu.Lock()
	writing, done := o.writing, o.done
	o.mu.Unlock()
	if !writing {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
