package core

import (
	"context"
	"time"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/progress"
	"gompi/internal/stats"
)

// Do does o, as blocking collectives do, with the same errors, and does not keep o. From here to
// the first store into shared memory, a short allreduce makes these calls that are not inlined:
// Check finds bad arguments before anything is sent; Perform begins a round, which numbers the
// call; Exec.Do follows the Path that Selector.For finds; Shared.Run leads to the function of
// shmcoll for it, allreduceShort.
func (c *Comm) Do(ctx context.Context, o *call.Call) (err error) {
	var span stats.Span
	if err = o.Check(c.Rank(), c.Size()); err != nil {
		return c.fault(o.Kind.String(), -1, BadArgument("%v", err))
	}
	if c.stats.On() {
		c.stats.Begin(&span, stats.Op(o.Kind), o.Bytes(), placeOf(ctx))
	}
	if c.ops.Begin() {
		defer c.ops.EndOf(o) // also if a function panics
		c.round.Recall()
		err = c.ops.Perform(ctx, o, progress.PlaceOf(ctx))
	} else {
		err = c.ops.Run(ctx, o)
	}
	if span.On() {
		span.End()
	}
	return c.fault(o.Kind.String(), -1, err)
}

// WithCheck is progress.WithCheck.
func WithCheck(ctx context.Context, check func(waited time.Duration) (next time.Duration, err error)) context.Context {
	return progress.WithCheck(ctx, check)
}

// InBackground returns a context whose collectives do not delay the collectives of other
// goroutines.
func InBackground(ctx context.Context) context.Context { return progress.InBackground(ctx) }

// Within is progress.Within, for functions of MPI.
func Within(ctx context.Context, of calls.Kind) context.Context { return progress.Within(ctx, of) }
