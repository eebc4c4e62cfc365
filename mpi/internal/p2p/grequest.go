package p2p

import (
	"sync"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

// generalized is the state of a request of MPI_Grequest_start: functions of the program's.
type generalized struct {
	queryFn, freeFn, cancelFn, extra abi.Addr

	mu    sync.Mutex
	over  bool // MPI_Grequest_complete was called
	freed bool // MPI_Request_free was, before
}

func GrequestStart(queryFn, freeFn, cancelFn, extra abi.Addr) (*Request, error) {
	r := NewRequest(comms.World).Of(comms.Unattached)
	r.user = &generalized{queryFn: queryFn, freeFn: freeFn, cancelFn: cancelFn, extra: extra}
	r.Op = comms.World.P2P.Promise()
	return r, nil
}

// GrequestComplete ends the operation. Its outcome is queried when the program waits for the
// request.
func GrequestComplete(r *Request) error {
	if r == nil || r.user == nil {
		return errs.New(errs.Request, "the request is not a generalized one")
	}
	r.user.mu.Lock()
	r.user.over = true
	op, freed := r.Op, r.user.freed // MPI_Request_free may reuse r from now on
	r.user.mu.Unlock()
	comms.World.P2P.Complete(op, nil)
	if freed {
		_ = r.user.release()
		r.release()
	}
	return nil
}

// SetLanguage sets the language of the functions, other than C.
func (r *Request) SetLanguage(language int) {
	if g := r.user; g != nil {
		g.queryFn, g.freeFn, g.cancelFn = g.queryFn.In(language), g.freeFn.In(language), g.cancelFn.In(language)
	}
}

// query asks the program for the status.
func (g *generalized) query(st *abi.Status) error {
	*st = abi.OfNothing
	return classError(abi.C.Query(g.queryFn, g.extra, st), "the request's function for its status has failed")
}

// release calls the program's function that frees its request. MPI_Wait returns the error.
func (g *generalized) release() error {
	if g.freeFn == 0 {
		return nil
	}
	return classError(abi.C.Release(g.freeFn, g.extra), "the request's function to free it has failed")
}

func (g *generalized) cancel(over bool) error {
	g.mu.Lock()
	over = over || g.over
	g.mu.Unlock()
	return classError(abi.C.Cancel(g.cancelFn, g.extra, over), "the request's function to cancel has failed")
}

// free releases r: at once if r is over, else when r is.
func (g *generalized) free(r *Request) {
	g.mu.Lock()
	g.freed = true
	over := g.over
	g.mu.Unlock()
	if over {
		_ = g.release()
		r.release()
	}
}

func classError(c abi.Class, text string) error {
	if c == 0 {
		return nil
	}
	return errs.New(c, "%s", text)
}
