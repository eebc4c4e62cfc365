package memtest

import (
	"sync"

	"gompi/internal/mem"
)

// A Stream is a mem.Stream of a Device. A goroutine of the Stream calls its functions. One
// goroutine at a time uses a Stream, like any mem.Stream.
type Stream struct {
	d     *Device
	ended chan struct{}

	mu      sync.Mutex
	changed sync.Cond
	work    []func() error
	closed  bool
	err     error // of the first work that failed
}

var _ mem.Stream = (*Stream)(nil)

// OpenStream returns a Stream that waits for no other. Close ends its goroutine.
func (d *Device) OpenStream() *Stream {
	q := &Stream{d: d, ended: make(chan struct{})}
	q.changed.L = &q.mu
	go q.run()
	return q
}

func (q *Stream) run() {
	defer close(q.ended)
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.work) == 0 && !q.closed {
			q.changed.Wait()
		}
		if len(q.work) == 0 {
			return
		}
		f := q.work[0]
		q.work = q.work[1:]
		q.mu.Unlock()
		err := f()
		q.mu.Lock()
		if q.err == nil {
			q.err = err
		}
	}
}

// Do puts f on the Stream.
func (q *Stream) Do(f func() error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work = append(q.work, f)
	q.changed.Signal()
}

// Space returns the Device.
func (q *Stream) Space() mem.Space { return q.d }

// Copy is Device.Copy, on the Stream.
func (q *Stream) Copy(dst, src mem.Buffer) error {
	q.Do(func() error { return q.d.Copy(dst, src) })
	return nil
}

// Clear puts the zeroing of b on the Stream.
func (q *Stream) Clear(b mem.Buffer) error {
	q.Do(func() error { return q.d.Copy(b, mem.Bytes(make([]byte, b.Size()))) })
	return nil
}

// Sync waits for all work, and returns the error of the first failed function.
func (q *Stream) Sync() error {
	m := &event{q: q}
	if err := m.Set(); err != nil {
		return err
	}
	if err := m.Wait(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Close waits for all work and ends the Stream.
func (q *Stream) Close() error {
	err := q.Sync()
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	<-q.ended
	return err
}

// NewEvent returns an Event for points of the Stream's work.
func (q *Stream) NewEvent() (mem.Event, error) { return &event{q: q}, nil }

// An event is at the point where done is closed. A nil done means that the event was never set.
type event struct {
	q    *Stream
	done chan struct{}
}

func (m *event) Set() error {
	done := make(chan struct{})
	m.done = done
	m.q.Do(func() error { close(done); return nil })
	return nil
}

func (m *event) Done() (bool, error) {
	select {
	case <-m.done:
		return true, nil
	default:
		return m.done == nil, nil
	}
}

func (m *event) Wait() error {
	if m.done != nil {
		<-m.done
	}
	return nil
}

func (m *event) Close() error { return nil }
