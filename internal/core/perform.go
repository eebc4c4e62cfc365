package core

import (
	"context"
	"time"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/progress"
	"gompi/internal/mem"
	"gompi/internal/stats"
)

// Do does o, as blocking collectives do, with the same errors, and does not keep o. From here to
// the first store into shared memory, a short allreduce makes these calls that are not inlined:
// Check finds bad arguments before anything is sent; perform begins a round, which numbers the
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
	if c.ops.begin() {
		defer c.ops.endOf(c, o) // also if a function panics
		c.round.Recall()
		err = c.perform(ctx, o, progress.PlaceOf(ctx))
	} else {
		err = c.ops.run(ctx, c, o)
	}
	if span.On() {
		span.End()
	}
	return c.fault(o.Kind.String(), -1, err)
}

// perform runs o in a round, which numbers o. Its caller defers unwind: a short collective can
// afford only a single deferred call.
func (c *Comm) perform(ctx context.Context, o *call.Call, at progress.Place) error {
	if at.Of != calls.None {
		o.Of = at.Of
	}
	if at.Background && o.Op.Program {
		o = c.handOver(o)
	}
	c.performs = true
	err := c.round.Begin(ctx, &o.Fingerprint, o.Bytes(), at.Background)
	if err == nil {
		err = c.round.End(c.exec.Do(o))
	}
	if err != nil { // if the error is this rank's alone, the others wait in vain
		c.suspect.Store(true)
		c.ch.Break("failed in " + o.String() + ": " + err.Error())
	}
	c.performs = false
	return err
}

// handOver returns a copy of o whose operator runs on a thread of the program, inside any MPI call
// of that thread.
func (c *Comm) handOver(o *call.Call) *call.Call {
	handed, combine := *o, o.Op.Func
	handed.Op.Func = func(acc, in mem.Buffer) { c.e.Callback(func() { combine(acc, in) }) }
	return &handed
}

// unwind ends o if perform has not returned, because an operator or a device panicked or ended
// its goroutine. Other ranks wait for this rank, so c breaks; a caller that recovers may use
// other Comms.
func (c *Comm) unwind(o *call.Call) {
	if !c.performs {
		return
	}
	c.performs = false
	c.suspect.Store(true)
	c.ch.Break("panicked, or ended its goroutine, in " + o.String())
	c.round.End(nil)
}

// WithCheck returns a context whose calls ask check while they wait: see package comm.
func WithCheck(ctx context.Context, check func(waited time.Duration) (next time.Duration, err error)) context.Context {
	return progress.WithCheck(ctx, check)
}

// InBackground returns a context whose collectives do not delay the collectives of other
// goroutines.
func InBackground(ctx context.Context) context.Context { return progress.InBackground(ctx) }

// Within is progress.Within, for functions of MPI.
func Within(ctx context.Context, of calls.Kind) context.Context { return progress.Within(ctx, of) }
