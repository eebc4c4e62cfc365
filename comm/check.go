package comm

import (
	"context"
	"time"

	"gompi/internal/core"
)

// WithCheck returns a context whose calls ask check while they wait: on the goroutine of the call,
// with no lock held, and first after about a millisecond. check gets how long they have waited,
// and returns how long it is until it wants to be asked again, 0 for not in this wait. An error
// ends the call as the end of the context does, with the error as the cause: a collective breaks
// its Comm.
//
// It is for what a thread has to do while it waits, such as an interpreter's signal handlers. check
// may send and receive. Calls that do not sleep do not ask, and one that takes several steps counts
// each from its beginning; what runs on goroutines of the library asks on those. Waits for a
// device's work do not ask.
func WithCheck(ctx context.Context, check func(waited time.Duration) (next time.Duration, err error)) context.Context {
	return core.WithCheck(ctx, check)
}

// InBackground returns a context whose collectives do not delay those of other goroutines: they
// poll only while another has just begun to wait, and else sleep until a message comes. It is for
// calls on a goroutine beside threads that compute, in languages that have no nonblocking
// collectives. Only the outermost context counts: derive no other from it.
func InBackground(ctx context.Context) context.Context { return core.InBackground(ctx) }
