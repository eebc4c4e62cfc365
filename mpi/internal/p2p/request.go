package p2p

import (
	"context"
	"errors"
	"sync"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

var Requests = abi.NewRegistry(abi.RequestNull, func(r *Request) abi.Handle { return r.Handle })

// A Request is an operation in progress, or a persistent request.
type Request struct {
	Handle abi.Handle
	Op     core.Request
	Others []core.Request        // besides Op, of an operation with several
	Then   func(err error) error // the rest of the operation's completion; returns the request's error
	Own    []*core.Comm          // of a persistent collective,
	Close  func()                // which Close closes

	c      *comms.Comm
	by     comms.Raiser           // the object whose error handler is called, nil for c
	isRecv bool                   // its status is the message's
	again  func(r *Request) error // starts a persistent request
	order  uint64                 // the order of posting, of a receive that the face can have,
	source int                    // and its source
	active bool                   // started, and its outcome was not reported
	over   bool                   // st and err are its outcome
	user   *generalized           // of MPI_Grequest_start
	st     abi.Status
	err    error
}

// RequestDone is the common request of all operations that complete at once with an empty status.
var RequestDone = &Request{Handle: abi.RequestDone}

func init() {
	Requests.Set(RequestDone.Handle, RequestDone)
	comms.HasRequests = func(c *comms.Comm) bool { return Requests.Any(func(r *Request) bool { return r.c == c }) }
}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// NewRequest returns a request that is active.
func NewRequest(c *comms.Comm) *Request {
	r := requestPool.Get().(*Request)
	r.c, r.active = c, true
	r.Handle = Requests.Add(r)
	return r
}

// Of sets the object of a new request, if that is no communicator.
func (r *Request) Of(by comms.Raiser) *Request {
	r.by = by
	return r
}

// failed returns r's error.
func (r *Request) failed() error {
	if r.by != nil {
		return comms.Failed(r.by, r.err)
	}
	return comms.Failed(r.c, r.err)
}

// release takes the handle back.
func (r *Request) release() {
	if r.Handle != 0 && r != RequestDone {
		Requests.Remove(r.Handle)
	}
	if h := r.Handle; h >= abi.FirstHeld && h < abi.FirstHandle {
		comms.Lease.Free(int(h - abi.FirstHeld))
	}
	if len(r.Own) > 0 {
		r.c.DropPrivate(r.Own)
		r.Close()
	}
	if r.again != nil {
		r.c.Let()
	}
	*r = Request{}
	requestPool.Put(r)
}

// Become calls start, and makes the persistent request r wait for the started operation.
func (r *Request) Become(start func() (*Request, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	r.Op, r.Others, r.Then = s.Op, s.Others, s.Then
	if s == RequestDone {
		r.Finish(abi.OfNothing)
		return nil
	}
	s.Others, s.Then = nil, nil
	s.release()
	return nil
}

// Persist makes r, which is new, inactive. start starts r, even after the program has freed the
// communicator.
func (r *Request) Persist(start func(r *Request) error) {
	r.active, r.again = false, start
	r.c.Keep()
}

// Finish makes r, which has just begun, over.
func (r *Request) Finish(st abi.Status) { r.over, r.st = true, st }

// complete stores the outcome of Op.
func (r *Request) complete(ctx context.Context, got core.Status, err error) {
	if len(r.Others) > 1 { // a single wait for all is shorter
		_ = comms.World.P2P.AwaitAll(ctx, r.Others) // which never ends
	}
	for _, o := range r.Others {
		if _, e := o.Wait(ctx); err == nil {
			err = e
		}
	}
	if err == nil {
		err = r.err
	}
	r.over, r.err, r.st = true, err, abi.OfNothing
	switch {
	case r.isRecv && errors.Is(err, context.Canceled): // by Cancel: no wait has a context that ends
		r.err, r.st.Cancelled = nil, 1
	case r.isRecv:
		r.st = r.c.StatusOf(got)
	}
	if r.Then != nil {
		r.err = r.Then(r.err)
	}
}

// await waits until r is over. ctx never ends.
func (r *Request) await(ctx context.Context) {
	if !r.over {
		got, err := r.Op.Wait(ctx)
		r.complete(ctx, got, err)
	}
}

// test reports whether r is over.
func (r *Request) test() bool {
	if r.over {
		return true
	}
	for _, o := range r.Others {
		_, done, err := o.Test()
		if !done {
			return false
		}
		if r.err == nil {
			r.err = err
		}
	}
	got, done, err := r.Op.Test() // last: Op reports its status once
	if done {
		r.complete(comms.Forever, got, err)
	}
	return r.over
}

// Wait waits for a request without a handle, and releases the request.
func (r *Request) Wait(st *abi.Status) error {
	r.await(comms.Forever)
	return r.report(st)
}

// report stores the outcome of a request that is over, and releases the request, or makes a
// persistent request inactive.
func (r *Request) report(st *abi.Status) error {
	err := r.show(st)
	if r.user != nil {
		if e := r.user.release(); e != nil {
			err = e
		}
	}
	if r.again != nil {
		r.active, r.over, r.err, r.Others = false, false, nil, nil
		return err
	}
	r.release()
	return err
}

// show stores the outcome of a complete request. A generalized request is queried each time.
func (r *Request) show(st *abi.Status) error {
	if r.user != nil {
		r.err = r.user.query(&r.st)
	}
	st.Set(r.st)
	return r.failed()
}

// active returns the request of h, nil if there is nothing to wait for: h is null, inactive, or
// RequestDone, which becomes null.
func active(h *abi.Handle) (*Request, error) {
	switch *h {
	case abi.RequestNull:
		return nil, nil
	case abi.RequestDone:
		*h = abi.RequestNull
		return nil, nil
	}
	r := Requests.Find(*h)
	if r == nil {
		return nil, errs.New(errs.Request, "the request is not valid")
	}
	if !r.active {
		return nil, nil
	}
	return r, nil
}

// retire reports the outcome of r, whose handle is h.
func retire(h *abi.Handle, r *Request, st *abi.Status) error {
	if r.again == nil {
		*h = abi.RequestNull
	}
	return r.report(st)
}

func Wait(h *abi.Handle, st *abi.Status) error {
	r, err := active(h)
	if r == nil {
		st.Set(abi.OfNothing)
		return err
	}
	r.await(comms.Forever)
	return retire(h, r, st)
}

func Test(h *abi.Handle, st *abi.Status) (bool, error) {
	r, err := active(h)
	if r == nil {
		st.Set(abi.OfNothing)
		return err == nil, err
	}
	if !r.test() {
		return false, nil
	}
	return true, retire(h, r, st)
}

func RequestGetStatus(r *Request, st *abi.Status) (bool, error) {
	if r == nil || !r.active {
		(&outcome{st: abi.OfNothing}).store(st)
		return true, nil
	}
	if !r.test() {
		return false, nil
	}
	err := r.show(st)
	if r.user == nil {
		return true, nil // the call that completes the request returns its error
	}
	return true, err
}

// RequestFree lets an active operation complete by itself.
func RequestFree(h *abi.Handle) error {
	if *h == abi.RequestNull {
		return errs.New(errs.Request, "the request is MPI_REQUEST_NULL")
	}
	r, err := active(h)
	if r == nil && err == nil {
		r = Requests.Find(*h) // inactive
	}
	*h = abi.RequestNull
	switch {
	case r == nil || r == RequestDone:
		return err
	case r.user != nil:
		r.user.free(r)
	case r.active && (r.isRecv || r.Then != nil):
		r.order = 0 // the face cannot have the receive any more
		go func() { // the message may have to be unpacked
			r.await(comms.InBackground)
			r.release()
		}()
	default:
		r.release()
	}
	return nil
}

// Cancel withdraws a receive that has not matched. A send is never withdrawn. The thread that
// completes the request, perhaps already waiting for it, finds it cancelled, and gives up the
// handle.
func Cancel(h *abi.Handle) error {
	if *h == abi.RequestNull {
		return errs.New(errs.Request, "the request is MPI_REQUEST_NULL")
	}
	same := *h
	r, err := active(&same)
	switch {
	case r == nil:
		return err
	case r.user != nil:
		return r.user.cancel(r.over)
	case r.isRecv && len(r.Others) == 0:
		r.Op.Cancel()
	}
	return nil
}

func Start(h *abi.Handle) error {
	r := Requests.Find(*h)
	if r == nil || r.again == nil || r.active {
		return errs.New(errs.Request, "the request is not an inactive persistent one")
	}
	r.active = true
	return r.again(r)
}

func Startall(n int, hs []abi.Handle) error {
	for i := range hs {
		if err := Start(&hs[i]); err != nil {
			return err
		}
	}
	return nil
}
