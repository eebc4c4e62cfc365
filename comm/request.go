package comm

import (
	"context"
	"errors"
	"iter"

	"gompi/comm/internal/engine"
)

// A Request is an operation that goes on while its caller does other things.
// Wait or Test tell when it is done; its buffers are the operation's until then.
// A Request that an ...Init function made is persistent: it does nothing before
// Start, and can be started again when it is done, at no cost but that of the
// operation.
//
// Methods may be called from any goroutine. A Request need not be waited for:
// it goes on anyway, and Close waits for nothing.
type Request struct {
	c    *Comm
	e    engine.Handle
	kind requestKind
	keep bool // persistent

	op *operation // of a collective

	peer int // of a message
	tag  int
	buf  Buffer

	staged *stagedRequest // of a message whose memory is staged
}

type requestKind uint8

const (
	sendRequest requestKind = iota
	ssendRequest
	recvRequest
	collectiveRequest
)

var requestNames = [...]string{"isend", "issend", "irecv", "collective"}

// ErrActive: Start of a Request that is not done.
var ErrActive = errors.New("request is still active")

// Isend is the function Isend for a Buffer.
func (c *Comm) Isend(to, tag int, b Buffer) *Request { return c.SendInit(to, tag, b).launch() }

// Issend is the function Issend for a Buffer.
func (c *Comm) Issend(to, tag int, b Buffer) *Request { return c.SsendInit(to, tag, b).launch() }

// Irecv is the function Irecv for a Buffer.
func (c *Comm) Irecv(from, tag int, b Buffer) *Request { return c.RecvInit(from, tag, b).launch() }

// SendInit returns a persistent Isend.
func (c *Comm) SendInit(to, tag int, b Buffer) *Request {
	return &Request{c: c, kind: sendRequest, peer: to, tag: tag, buf: b, keep: true}
}

// SsendInit returns a persistent Issend.
func (c *Comm) SsendInit(to, tag int, b Buffer) *Request {
	return &Request{c: c, kind: ssendRequest, peer: to, tag: tag, buf: b, keep: true}
}

// RecvInit returns a persistent Irecv.
func (c *Comm) RecvInit(from, tag int, b Buffer) *Request {
	return &Request{c: c, kind: recvRequest, peer: from, tag: tag, buf: b, keep: true}
}

// launch starts a request that is not persistent. An error is kept for Wait.
func (r *Request) launch() *Request {
	r.begin()
	r.keep = false
	return r
}

// Start starts a persistent request. All ranks start collective requests of one
// communicator in the same order.
func (r *Request) Start() error {
	switch {
	case !r.keep:
		return r.c.fault(r.name(), -1, errors.New("request is not persistent"))
	case r.e.Started() && !r.e.Done():
		return r.c.fault(r.name(), -1, ErrActive)
	}
	r.begin()
	if r.e.Done() {
		_, err := r.result()
		return err
	}
	return nil
}

func (r *Request) begin() {
	if err := r.start(); err != nil {
		r.c.e.Expect(&r.e)
		r.c.e.Complete(&r.e, err)
	}
}

// start checks the arguments and begins the operation.
func (r *Request) start() (err error) {
	c := r.c
	switch r.kind {
	case recvRequest:
		err = c.checkRecv(r.peer, r.tag)
	case collectiveRequest:
		err = c.check(r.op)
	default:
		err = c.checkSend(r.peer, r.tag)
	}
	switch {
	case err != nil:
	case r.kind == collectiveRequest:
		c.turns.enqueue(c, r)
	case !r.buf.IsHost():
		err = r.startStaged()
	default:
		r.message(&r.e, r.buf)
	}
	return err
}

// message begins e as r's message, to or from b.
func (r *Request) message(e *engine.Handle, b Buffer) {
	if r.kind == recvRequest {
		r.c.ch.Irecv(e, r.peer, r.tag, b)
	} else {
		r.c.ch.Isend(e, r.peer, r.tag, b, r.kind == ssendRequest)
	}
}

func (r *Request) name() string {
	if r.kind == collectiveRequest {
		return "i" + r.op.call.Kind.String()
	}
	return requestNames[r.kind]
}

// Done reports whether the operation is complete. It makes no progress: use
// Test in a loop that waits.
func (r *Request) Done() bool { return r.e.Done() }

// Wait waits until the operation is complete and returns its outcome. If ctx
// ends first Wait returns its cause, and the operation goes on.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	if !r.e.Started() {
		return Status{}, nil
	}
	if err := r.c.e.Wait(ctx, &r.e); err != nil {
		return Status{}, r.c.fault(r.name(), r.whom(), err)
	}
	return r.result()
}

// Test makes some progress and reports whether the operation is complete; if
// so, its outcome is that of Wait.
func (r *Request) Test() (st Status, done bool, err error) {
	if r.e.Started() && !r.e.Done() {
		r.c.e.Progress()
		if !r.e.Done() {
			return Status{}, false, nil
		}
	}
	st, err = r.Wait(context.Background())
	return st, true, err
}

// Cancel withdraws a receive that has not matched a message yet (MPI_Cancel).
// It reports whether it did; the receive then fails with context.Canceled.
func (r *Request) Cancel() bool {
	if r.kind != recvRequest {
		return false
	}
	if s := r.staged; s != nil {
		return r.c.ch.Cancel(&s.e, context.Canceled)
	}
	return r.c.ch.Cancel(&r.e, context.Canceled)
}

func (r *Request) result() (Status, error) {
	st, err := r.e.Result()
	if r.staged != nil {
		st, _ = r.staged.e.Result()
	}
	return statusOf(st), r.c.fault(r.name(), r.whom(), err)
}

func (r *Request) whom() int {
	if r.kind == collectiveRequest {
		return -1
	}
	return r.peer
}

// WaitAll waits for all requests, which belong to one process, and returns the
// first error, in their order.
// If ctx ends first it returns its cause, and what is not complete goes on.
func WaitAll(ctx context.Context, rs ...*Request) error {
	if len(rs) == 0 {
		return nil
	}
	c := rs[0].c
	if err := c.e.WaitAll(ctx, each(rs)); err != nil {
		return c.fault("waitall", -1, err)
	}
	for _, r := range rs {
		if !r.e.Started() {
			continue
		}
		if _, err := r.result(); err != nil {
			return err
		}
	}
	return nil
}

// each yields the engine's part of each request.
func each(rs []*Request) iter.Seq[*engine.Handle] {
	return func(yield func(*engine.Handle) bool) {
		for _, r := range rs {
			if !yield(&r.e) {
				return
			}
		}
	}
}

// WaitAny waits until one of the requests, which are not empty and belong to
// one process, is complete. It returns its index and outcome. A request is
// reported again by the next call, as long as it is among rs.
func WaitAny(ctx context.Context, rs ...*Request) (int, Status, error) {
	done, err := WaitSome(ctx, rs...)
	if err != nil {
		return -1, Status{}, err
	}
	st, err := rs[done[0]].Wait(ctx)
	return done[0], st, err
}

// WaitSome waits until at least one of the requests is complete, and returns the
// indices of all that are. Their outcomes are for Wait to tell. The error is
// ctx's alone.
func WaitSome(ctx context.Context, rs ...*Request) ([]int, error) {
	if len(rs) == 0 {
		return nil, badArgument("no requests to wait for")
	}
	if err := rs[0].c.e.WaitAny(ctx, each(rs)); err != nil {
		return nil, rs[0].c.fault("waitsome", -1, err)
	}
	var done []int
	for i, r := range rs {
		if !r.e.Started() || r.e.Done() {
			done = append(done, i)
		}
	}
	return done, nil
}

// collective returns a persistent request for o.
func (c *Comm) collective(o operation) *Request {
	return &Request{c: c, kind: collectiveRequest, peer: -1, op: &o, keep: true}
}
