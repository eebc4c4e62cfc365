package comm

import (
	"context"
	"errors"

	"gompi/comm/internal/call"
	"gompi/comm/internal/progress"
	"gompi/comm/internal/shmsync"
)

// do runs o for a blocking call. From here to the first store into shared memory, a short
// allreduce makes these calls that are not inlined: Check finds bad arguments before anything is
// sent; perform numbers the call and records it; Exec.Do follows the Path that Selector.For
// finds; Shared.Run leads to the function of shmcoll for it, allreduceShort.
func (c *Comm) do(ctx context.Context, o *call.Call) (err error) {
	if err = o.Check(c.Rank(), c.Size()); err != nil {
		err = badArgument("%v", err)
	} else if c.ops.begin() {
		defer c.ops.endOf(c, o) // also if a function panics
		err = c.perform(ctx, o, progress.IsInBackground(ctx))
	} else {
		err = c.ops.run(ctx, c, o)
	}
	return c.fault(o.Kind.String(), -1, err)
}

// perform runs o: in a round, which numbers it, unless shared memory does so.
// quiet is for collectives that run in the background. Its caller defers unwind: one deferred
// call in all is what a short collective can afford.
func (c *Comm) perform(ctx context.Context, o *call.Call, quiet bool) (err error) {
	c.performs = true
	if c.rounds {
		err = c.inRound(ctx, o, quiet)
	} else {
		a, b := o.Words()
		c.port.next(a, b, o.Bytes())
		c.port.FlagWait.Begin(ctx, a, b, 0, quiet)
		if err = c.ch.Err(); err == nil {
			c.exec.Shared.Begin(shmsync.Call{A: a, B: b}, quiet)
			err = c.exec.Do(o)
		}
		c.rec.EndCall(c.port.ticket)
	}
	if err != nil { // if it is this rank's alone, the others wait in vain
		c.suspect.Store(true)
		c.ch.Break("failed in " + o.String() + ": " + err.Error())
	}
	c.performs = false
	return err
}

// unwind ends o if perform has not returned, because an operator or a device panicked or ended its
// goroutine. Other ranks wait for this one, so c breaks; a caller that recovers may use other
// Comms.
func (c *Comm) unwind(o *call.Call) {
	if !c.performs {
		return
	}
	c.performs = false
	c.suspect.Store(true)
	c.ch.Break("panicked, or ended its goroutine, in " + o.String())
	if c.rounds {
		c.ch.Round().End()
	} else {
		c.rec.EndCall(c.port.ticket)
	}
}

// inRound gives o the next number, compares it with what the other ranks called, and
// runs it.
func (c *Comm) inRound(ctx context.Context, o *call.Call, quiet bool) error {
	rd := c.ch.Round()
	a, b := o.Words()
	ticket := c.rec.BeginCollective(c.ch.ID, a, b, o.Bytes(), rd.Seq()+1)
	defer c.rec.EndCall(ticket)
	if err := rd.Begin(ctx, o.Fingerprint, ticket, quiet); err != nil {
		return err
	}
	switch {
	case c.exec.Shared != nil:
		c.inner.begin(ctx, c.exec.Shared, &o.Fingerprint, ticket, quiet)
	case c.exec.Hier != nil && c.exec.Hier.Shared() != nil:
		c.inner.begin(ctx, c.exec.Hier.Shared(), &o.Fingerprint, ticket, quiet)
	}
	err := c.exec.Do(o)
	if err != nil {
		rd.Fail(err)
	}
	ended := rd.End()
	if ended == nil || err != nil && c.brokeIt(ended) {
		return err
	}
	return ended
}

// brokeIt reports whether err says that this rank has broken c.
func (c *Comm) brokeIt(err error) bool {
	var revoked *RevokedError
	return errors.As(err, &revoked) && revoked.Rank == c.Rank()
}
