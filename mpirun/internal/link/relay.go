package link

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"gompi/mpirun/internal/stdio"
)

const (
	// idleTime bounds the wait of a relay without hosts for its end. Its launcher may be gone
	// unnoticed: agents end on silence.
	idleTime = 4 * time.Second
	// leaveTime bounds a relay's wait for its processes after the launcher's end, longer than
	// agents try to kill unkillable processes.
	leaveTime = 8 * time.Second
)

// Relay runs a relay for the launcher or relay behind in and out, until that ends or closes in.
// The result is the exit status of the process, which is the relay's alone.
func Relay(in io.Reader, out io.Writer) int {
	if err := relay(in, out); err != nil {
		fmt.Fprintf(stdio.Stderr, "gompirun: relay: %v\n", err)
		return 1
	}
	return 0
}

func relay(in io.Reader, out io.Writer) error {
	if _, err := io.WriteString(out, magic); err != nil {
		return err
	}
	r := newReader(in)
	m, err := r.next()
	if err != nil {
		return err
	}
	first, ok := m.(*begin)
	if !ok {
		return fmt.Errorf("the first message is a %T", m)
	}
	ssh, err := first.ways.SSH()
	if err != nil {
		return err
	}
	w := &writer{to: out}
	h := newHub(first.host, ssh, w.deliver)
	h.follow(&start{host: h.self, from: h.self, limit: time.Hour})
	over := make(chan error, 1)
	go func() { over <- h.obey(r) }()
	go func() { over <- h.idle() }() // both until the process ends
	err = <-over
	h.closeAll()
	late := time.AfterFunc(leaveTime, func() { os.Exit(1) })
	defer late.Stop()
	h.await(func() bool { return h.running == 0 })
	return err
}

// obey follows orders until their end.
func (h *hub) obey(r *reader) error {
	for {
		m, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		h.follow(m)
	}
}

// idle waits until no process has run for some time.
func (h *hub) idle() error {
	for quiet := 0; quiet < 2; {
		time.Sleep(idleTime / 2)
		h.mu.Lock()
		if quiet++; h.running > 0 {
			quiet = 0
		}
		h.mu.Unlock()
	}
	return nil
}

// await waits until is returns true. h is locked during is.
func (h *hub) await(is func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !is() {
		h.changed.Wait()
	}
}

// A writer writes messages up. If the launcher does not read, the relay waits, and so do its
// agents.
type writer struct {
	mu  sync.Mutex
	to  io.Writer
	buf []byte
}

func (w *writer) deliver(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = protocol.Append(w.buf[:0], m)
	w.to.Write(w.buf) // an error means that the launcher is gone: orders end, too
}
