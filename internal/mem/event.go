package mem

// An Event is a point in the work of the Stream that made it. One goroutine at a time uses the
// Event, and no other goroutine uses its Stream during Set.
type Event interface {
	// Set moves the Event behind all present work of the Stream.
	Set() error
	// Done reports whether the work before the point is done. An Event that was never set is done.
	Done() (bool, error)
	// Wait waits until Done would report true. It may be called while another goroutine uses the
	// Stream.
	Wait() error
	// Close releases the Event.
	Close() error
}
