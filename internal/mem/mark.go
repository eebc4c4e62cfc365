package mem

// A Mark is a point in the work of a device's queue, which made it. One goroutine at
// a time uses it, and its queue while it calls Set.
type Mark interface {
	// Set makes it the point after all work that the queue has now.
	Set() error
	// Done reports whether the queue has come to the point. A Mark that was never
	// set is done.
	Done() (bool, error)
	// Wait waits until it is done.
	Wait() error
	// Close gives the Mark back.
	Close() error
}
