package mpi

import (
	"sync"

	"gompi/comm"
	"gompi/comm/internal/mpi/table"
)

// A Request is an operation in progress, or a persistent one.
type Request struct {
	handle Handle
	c      *Comm
	op     comm.Request
	into   landing                // where a message that is not contiguous is unpacked to
	then   func(err error) error  // what else is done when it is complete; the request's error
	isRecv bool                   // its status says what has come
	again  func(r *Request) error // starts it, if it is persistent
	active bool                   // started, and its outcome was not reported
	over   bool                   // st and err are its outcome
	others []comm.Request         // besides op, of an operation with several
	own    *comm.Comm             // of a persistent collective: closed with it
	free   bool                   // MPI_Request_free was called while it was active
	user   *generalized           // of MPI_Grequest_start
	st     Status
	err    error
}

// requestDone is the request of all operations that are over when they begin and have nothing to
// report.
var requestDone = &Request{handle: table.RequestDone}

var requestPool = sync.Pool{New: func() any { return new(Request) }}

// newRequest returns a request that is active.
func newRequest(c *Comm) *Request {
	r := requestPool.Get().(*Request)
	r.c, r.active = c, true
	r.handle = requests.add(r)
	return r
}

// release takes the handle back.
func (r *Request) release() {
	if r.handle != 0 && r != requestDone {
		requests.remove(r.handle)
	}
	if r.own != nil {
		closing.add(r.own)
	}
	*r = Request{}
	requestPool.Put(r)
}

// complete stores the outcome of op.
func (r *Request) complete(got comm.Status, err error) {
	for _, o := range r.others {
		if _, e := o.Wait(forever); err == nil {
			err = e
		}
	}
	if err == nil {
		err = r.err
	}
	r.over, r.err, r.st = true, err, ofNothing
	if r.isRecv {
		r.into.arrived(got.Bytes)
		r.st = r.c.statusOf(got)
	}
	if r.then != nil {
		r.err = r.then(err)
	}
	if r.user != nil {
		r.err = r.user.query(&r.st)
	}
}

// await waits until r is over.
func (r *Request) await() {
	if !r.over {
		r.complete(r.op.Wait(forever))
	}
}

// test reports whether r is over.
func (r *Request) test() bool {
	if r.over {
		return true
	}
	for _, o := range r.others {
		_, done, err := o.Test()
		if !done {
			return false
		}
		if r.err == nil {
			r.err = err
		}
	}
	got, done, err := r.op.Test() // last: it reports its status once
	if done {
		r.complete(got, err)
	}
	return r.over
}

// wait waits for a request that has no handle, and releases it.
func (r *Request) wait(st *Status) error {
	r.await()
	return r.report(st)
}

// report stores the outcome of a request that is over, and releases it, or makes it inactive if it
// is persistent.
func (r *Request) report(st *Status) error {
	err := r.err
	st.set(r.st)
	if r.user != nil {
		r.user.release()
	}
	if r.again != nil {
		r.active, r.over, r.err, r.others = false, false, nil, nil
		return err
	}
	r.release()
	return err
}

// active returns the request behind h, nil if that is null, inactive, or over since it began: then
// h is null, and there is nothing to wait for.
func active(h *Handle) (*Request, error) {
	switch *h {
	case table.RequestNull:
		return nil, nil
	case table.RequestDone:
		*h = table.RequestNull
		return nil, nil
	}
	r := requests.find(*h)
	if r == nil {
		return nil, wrong(errRequest, "the request is not valid")
	}
	if !r.active {
		return nil, nil
	}
	return r, nil
}

// retire reports the outcome of r, whose handle is h.
func retire(h *Handle, r *Request, st *Status) error {
	if r.again == nil {
		*h = table.RequestNull
	}
	return r.report(st)
}

func Wait(h *Handle, st *Status) error {
	r, err := active(h)
	if r == nil {
		st.set(ofNothing)
		return err
	}
	r.await()
	return retire(h, r, st)
}

func Test(h *Handle, st *Status) (bool, error) {
	r, err := active(h)
	if r == nil {
		st.set(ofNothing)
		return err == nil, err
	}
	if !r.test() {
		return false, nil
	}
	return true, retire(h, r, st)
}

func RequestGetStatus(r *Request, st *Status) (bool, error) {
	if r == nil || !r.active {
		st.set(ofNothing)
		return true, nil
	}
	if !r.test() {
		return false, nil
	}
	st.set(r.st)
	return true, nil
}

// RequestFree lets an active operation complete by itself.
func RequestFree(h *Handle) error {
	if *h == table.RequestNull {
		return wrong(errRequest, "the request is MPI_REQUEST_NULL")
	}
	r, err := active(h)
	if r == nil && err == nil {
		r = requests.find(*h) // inactive
	}
	*h = table.RequestNull
	switch {
	case r == nil || r == requestDone:
		return err
	case r.user != nil && !r.over:
		r.user.free(r)
	case r.active && (r.isRecv || r.then != nil):
		go func() { // what arrives may have to be unpacked
			r.await()
			r.again = nil
			r.release()
		}()
	default:
		r.again = nil
		r.release()
	}
	return nil
}

// Cancel withdraws a receive that has not matched. A send is never withdrawn.
func Cancel(h *Handle) error {
	r, err := active(h)
	switch {
	case r == nil:
		return err
	case r.user != nil:
		return r.user.cancel(r.over)
	case r.isRecv && !r.over && len(r.others) == 0 && r.op.Cancel():
		r.over, r.st = true, ofNothing
		r.st.Cancelled = 1
	}
	return nil
}

func Start(h *Handle) error {
	r := requests.find(*h)
	if r == nil || r.again == nil || r.active {
		return wrong(errRequest, "the request is not an inactive persistent one")
	}
	r.active = true
	return r.again(r)
}

func Startall(n int, hs []Handle) error {
	for i := range hs {
		if err := Start(&hs[i]); err != nil {
			return err
		}
	}
	return nil
}
