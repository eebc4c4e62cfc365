package comm

import (
	"context"
	"time"

	"gompi/internal/core"
)

// WithCheck returns a context whose calls ask check while they wait: on the goroutine of the call,
// with no lock held, and first after about a millisecond. check gets the waiting time so far, and
// returns the time until the next question, 0 for never in this wait. An error ends the call as the
// end of the context does, with the error as the cause: a collective breaks its Comm.
//
// check serves duties of a thread while it waits, such as an interpreter's signal handlers. check
// may send and receive. Calls that do not sleep do not ask. A call of several steps counts each
// step from its beginning; work on goroutines of the library asks on those goroutines. Waits for a
// device's work do not ask.
func WithCheck(ctx context.Context, check func(waited time.Duration) (next time.Duration, err error)) context.Context {
	return core.WithCheck(ctx, check)
}

// InBackground returns a context whose collectives do not delay collectives of other goroutines:
// they poll only while another has just begun to wait, and otherwise sleep until a message comes.
// It serves calls on a goroutine beside computing threads, in languages that have no nonblocking
// collectives. Only the outermost context counts: derive no other context from it.
func InBackground(ctx context.Context) context.Context { return core.InBackground(ctx) }
