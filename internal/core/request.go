package core

import (
	"context"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/progress"
	"gompi/internal/mem"
	"gompi/internal/stats"
)

// A Request is a nonblocking operation of a communicator. The zero Request is a null request, and
// so is a Request whose outcome Wait or Test has returned. Methods may be called from any
// goroutine.
type Request struct {
	c    *Comm
	h    message.Handle
	kind requestKind
	peer int32 // of a message
}

// A requestKind is one of the following, or a further kind for each collective.
type requestKind uint8

const (
	sendRequest requestKind = iota
	ssendRequest
	recvRequest
	promisedRequest // of Promise
	collectiveRequest
)

var requestNames = [...]string{"isend", "issend", "irecv", "operation"}

func (k requestKind) String() string {
	if k >= collectiveRequest {
		return "i" + calls.Kind(k-collectiveRequest).String()
	}
	return requestNames[k]
}

// Isend starts a Send.
func (c *Comm) Isend(to, tag int, b mem.Buffer) Request { return c.message(sendRequest, to, tag, b) }

// Issend starts an Ssend.
func (c *Comm) Issend(to, tag int, b mem.Buffer) Request { return c.message(ssendRequest, to, tag, b) }

// Irecv starts a Recv.
func (c *Comm) Irecv(from, tag int, b mem.Buffer) Request {
	return c.message(recvRequest, from, tag, b)
}

// message starts a message. An error is kept for Wait.
func (c *Comm) message(k requestKind, peer, tag int, b mem.Buffer) Request {
	r := Request{c: c, kind: k, peer: int32(peer)}
	switch err := c.checkMessage(k, peer, tag, b); {
	case err != nil:
		r.peer, r.h = -1, c.notStarted(k, err)
	case c.stats.On():
		r.h = c.launchCounted(k, peer, tag, b)
	case staged(b):
		r.h = c.startStaged(k, peer, tag, b)
	default:
		r.h = c.launch(k, peer, tag, b)
	}
	return r
}

// launchCounted starts a message and counts the message.
func (c *Comm) launchCounted(k requestKind, peer, tag int, b mem.Buffer) message.Handle {
	var span stats.Span
	c.countStart(&span, k, peer, tag, b)
	defer span.End()
	if staged(b) {
		return c.startStaged(k, peer, tag, b)
	}
	return c.launch(k, peer, tag, b)
}

func (c *Comm) checkMessage(k requestKind, peer, tag int, b mem.Buffer) error {
	if k == recvRequest {
		return c.checkInto(peer, tag, b)
	}
	return c.checkSend(peer, tag)
}

// notStarted returns the handle of a message that a check has refused.
func (c *Comm) notStarted(k requestKind, err error) message.Handle {
	switch {
	case err != errProcNull:
		return c.failed(err)
	case k == recvRequest:
		return c.over(message.Status{Source: ProcNull, Tag: message.Any}, nil)
	}
	return message.Handle{}
}

// launch starts a message that is not staged.
func (c *Comm) launch(k requestKind, peer, tag int, b mem.Buffer) message.Handle {
	if k == recvRequest {
		return c.ch.Irecv(peer, tag, b)
	}
	return c.ch.Isend(peer, tag, b, k == ssendRequest)
}

// Start starts o, as nonblocking collectives do. Start copies o, but not its slices' elements: o
// may be changed or started again at once. Start does not allocate. An error is kept for Wait.
func (c *Comm) Start(o *call.Call) Request {
	r := Request{c: c, kind: collectiveRequest + requestKind(o.Kind), peer: -1}
	if err := o.Check(c.Rank(), c.Size()); err != nil {
		r.h = c.failed(BadArgument("%v", err))
		return r
	}
	var span stats.Span
	if c.stats.On() {
		c.stats.Begin(&span, stats.Nonblocking+stats.Op(o.Kind), o.Bytes(), nil)
	}
	r.h = c.ops.Enqueue(o)
	if span.On() {
		span.End()
	}
	return r
}

// Failing returns r with an error as its outcome: the operation was not started.
func (r Request) Failing(err error) Request {
	r.h = r.c.failed(err)
	return r
}

// failed returns the handle of an operation that could not be started.
func (c *Comm) failed(err error) message.Handle { return c.over(message.Status{}, err) }

// over returns the handle of an operation with an outcome.
func (c *Comm) over(st message.Status, err error) message.Handle {
	h := c.e.Expect(message.Handle{})
	c.e.Complete(h, st, err)
	return h
}

// Pend makes the race detector watch b, the buffer of the send r, whose outcome the program takes.
func (r Request) Pend(b mem.Buffer) {
	if r.h != (message.Handle{}) {
		r.h.Pend(b)
	}
}

// Done reports whether the operation is complete, without progress: use Test in a loop that
// waits.
func (r Request) Done() bool { return r.h.Done() }

// Wait waits until the operation is complete and returns its outcome. If ctx
// ends first Wait returns its cause, and the operation continues.
//
// A collective that has not begun runs on the caller's goroutine if ctx cannot end.
func (r Request) Wait(ctx context.Context) (Status, error) {
	if r.c != nil && r.c.stats.On() {
		var span stats.Span
		r.c.stats.Begin(&span, stats.Wait, 0, nil)
		defer span.End()
	}
	return r.outcome(ctx)
}

func (r Request) outcome(ctx context.Context) (Status, error) {
	if r.h == (message.Handle{}) {
		return empty, nil
	}
	r.help(ctx)
	st, _, err := r.c.e.Wait(ctx, r.h)
	if err != nil {
		return st, r.fault(err)
	}
	return st, nil
}

// help runs a collective that has not begun, unless ctx may end the wait, or is in the
// background.
func (r Request) help(ctx context.Context) {
	if r.kind >= collectiveRequest && ctx.Done() == nil && !progress.PlaceOf(ctx).Background && !r.Done() {
		r.c.ops.Help(r.h)
	}
}

// Test makes some progress and reports whether the operation is complete; if so, the outcome is
// Wait's.
func (r Request) Test() (st Status, done bool, err error) {
	if r.c != nil && r.c.stats.On() {
		var span stats.Span
		r.c.stats.Begin(&span, stats.Test, 0, nil)
		defer span.End()
	}
	if !r.Done() && !r.c.e.Test(r.h) {
		if r.kind >= collectiveRequest {
			r.c.e.Yield() // its goroutine may need this processor
		}
		return Status{}, false, nil
	}
	st, err = r.outcome(context.Background())
	return st, true, err
}

// Cancel withdraws a receive that has not matched a message yet (MPI_Cancel), and reports whether
// it did; the receive then fails with context.Canceled.
func (r Request) Cancel() bool {
	return r.kind == recvRequest && r.c != nil && r.c.ch.Cancel(r.h, context.Canceled)
}

func (r Request) fault(err error) error { return r.c.fault(r.kind.String(), int(r.peer), err) }

// WaitAll waits for all requests of a process, and returns the first error, in their order, or
// the cause of ctx's end.
func WaitAll(ctx context.Context, rs []Request) error {
	if c := caller(rs); c != nil && c.stats.On() {
		var span stats.Span
		c.stats.Begin(&span, stats.WaitAll, 0, nil)
		defer span.End()
	}
	return waitAll(ctx, rs)
}

func waitAll(ctx context.Context, rs []Request) error {
	for len(rs) > 0 && rs[0].h == (message.Handle{}) {
		rs = rs[1:] // a window of short messages is mostly this
	}
	if len(rs) == 0 {
		return nil
	}
	helpAll(ctx, rs)
	c := rs[0].c
	failed, err := c.e.WaitAll(ctx, len(rs), func(i int) message.Handle { return rs[i].h })
	switch {
	case err == nil:
		return nil
	case failed < 0:
		return c.fault("waitall", -1, err)
	}
	return rs[failed].fault(err)
}

// helpAll runs collectives among rs that have not begun.
func helpAll(ctx context.Context, rs []Request) {
	for _, r := range rs {
		r.help(ctx)
	}
}

// WaitAny waits until any of rs is complete and returns its index and outcome.
func WaitAny(ctx context.Context, rs []Request) (int, Status, error) {
	if c := caller(rs); c != nil && c.stats.On() {
		var span stats.Span
		c.stats.Begin(&span, stats.WaitAny, 0, nil)
		defer span.End()
	}
	i, err := waitAny(ctx, "waitany", rs)
	if err != nil {
		return -1, Status{}, err
	}
	st, err := rs[i].outcome(ctx)
	return i, st, err
}

// WaitSome waits until at least one of rs is complete, and returns the indices of all that are.
// The only error is the end of ctx.
func WaitSome(ctx context.Context, rs []Request) ([]int, error) {
	if c := caller(rs); c != nil && c.stats.On() {
		var span stats.Span
		c.stats.Begin(&span, stats.WaitSome, 0, nil)
		defer span.End()
	}
	first, err := waitAny(ctx, "waitsome", rs)
	if err != nil {
		return nil, err
	}
	done := []int{first}
	for i, r := range rs[first+1:] {
		if r.Done() {
			done = append(done, first+1+i)
		}
	}
	return done, nil
}

// caller returns the communicator of any of rs, nil if all are null.
func caller(rs []Request) *Comm {
	for i := range rs {
		if rs[i].c != nil {
			return rs[i].c
		}
	}
	return nil
}

// waitAny waits until any of rs is complete, and returns the first that is.
func waitAny(ctx context.Context, op string, rs []Request) (int, error) {
	if len(rs) == 0 {
		return -1, BadArgument("no requests to wait for")
	}
	for i, r := range rs {
		if r.Done() {
			return i, nil
		}
	}
	c := rs[0].c
	i, err := c.e.WaitAny(ctx, len(rs), func(i int) message.Handle { return rs[i].h })
	return i, c.fault(op, -1, err)
}

// Promise returns a Request for an operation that the caller does itself, perhaps in several steps,
// and ends by Complete. Waits for this Request are like waits for messages.
func (c *Comm) Promise() Request { return c.Promised(c.e.Expect(message.Handle{})) }

// Promised returns the Request for an operation of a Remote.
func (c *Comm) Promised(h message.Handle) Request {
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
