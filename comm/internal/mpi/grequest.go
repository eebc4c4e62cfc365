package mpi

import (
	"sync"
)

// generalized is what a request of MPI_Grequest_start has: functions of the program's.
type generalized struct {
	queryFn, freeFn, cancelFn, extra Addr

	mu    sync.Mutex
	over  bool // MPI_Grequest_complete was called
	freed bool // MPI_Request_free was, before
}

func GrequestStart(queryFn, freeFn, cancelFn, extra Addr) (*Request, error) {
	r := newRequest(world)
	r.user = &generalized{queryFn: queryFn, freeFn: freeFn, cancelFn: cancelFn, extra: extra}
	r.op = world.door().Promise()
	return r, nil
}

// GrequestComplete ends the operation. Its outcome is asked for when the program waits for it.
func GrequestComplete(r *Request) error {
	if r == nil || r.user == nil {
		return wrong(errRequest, "the request is not a generalized one")
	}
	r.user.mu.Lock()
	r.user.over = true
	freed := r.user.freed
	r.user.mu.Unlock()
	world.door().Complete(r.op, nil)
	if freed {
		r.user.release()
		r.release()
	}
	return nil
}

// query asks the program for the status.
func (g *generalized) query(st *Status) error {
	*st = ofNothing
	return classError(face.Query(g.queryFn, g.extra, st), "the request's function for its status has failed")
}

func (g *generalized) release() {
	if g.freeFn != 0 {
		_ = face.Release(g.freeFn, g.extra)
	}
}

func (g *generalized) cancel(over bool) error {
	g.mu.Lock()
	over = over || g.over
	g.mu.Unlock()
	return classError(face.Cancel(g.cancelFn, g.extra, over), "the request's function to cancel has failed")
}

// free lets r go: at once if it is over, else when it is.
func (g *generalized) free(r *Request) {
	g.mu.Lock()
	g.freed = true
	over := g.over
	g.mu.Unlock()
	if over {
		g.release()
		r.release()
	}
}

func classError(c Class, text string) error {
	if c == 0 {
		return nil
	}
	return wrong(c, "%s", text)
}
