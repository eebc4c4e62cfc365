package core

import (
	"context"

	"gompi/internal/core/message"
)

// Promise returns a Request for an operation that the caller does itself, perhaps in several steps,
// and ends by Complete. Waits for this Request are like waits for messages.
func (c *Comm) Promise() Request { return c.promised(c.e.Expect(message.Handle{})) }

func (c *Comm) promised(h message.Handle) Request {
	return Request{c: c, h: h, kind: promisedRequest, peer: -1}
}

// Complete ends a Promise of this communicator's.
func (c *Comm) Complete(r Request, err error) { c.e.Complete(r.h, message.Status{}, err) }

// AwaitAll waits until all of rs are complete. Wait then returns their outcomes. AwaitAll fails
// only if ctx ends first.
func (c *Comm) AwaitAll(ctx context.Context, rs []Request) error {
	helpAll(ctx, rs)
	return c.e.AwaitAll(ctx, len(rs), func(i int) message.Handle { return rs[i].h })
}

// Withdraw takes back posted receives without a message, all or none, and reports whether it did:
// only if nothing else is under way. Then rs are invalid.
func (c *Comm) Withdraw(rs []Request) bool {
	return c.e.Withdraw(len(rs), func(i int) message.Handle { return rs[i].h })
}

// Signal sends to ch, which has capacity 1, when the operation r is complete, once. r needs no
// waiter. If r is complete, Signal sends at once. soon states that r will soon be complete: then a
// goroutine polls meanwhile.
func (c *Comm) Signal(r Request, ch chan<- struct{}, soon bool) { c.e.Signal(r.h, ch, soon) }

// Progress polls once: for loops that wait for a word in memory. callBack states that a thread of
// the program has called the loop and holds no lock: then Progress calls functions of the program
// that operations in the background need called, as Request.Test does.
func (c *Comm) Progress(callBack bool) { c.e.Advance(callBack) }
