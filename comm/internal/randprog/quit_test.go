package randprog

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
)

// quit has one rank break a communicator made for that, by an operation that it gives up, while the
// others wait there in vain, each in a way of its own. All get the reason, also from a rank that
// has closed the communicator before they hear of it, or before they begin to wait.
func (g *giveUp) quit(r *runner, c *comm.Comm) error {
	d, err := c.Dup(r.ctx)
	if err != nil {
		return err
	}
	w := &vainWait{r: r, c: d, b: comm.Of(make([]byte, g.n))}
	how := one(r.rng, waysInVain)
	switch c.Rank() {
	case g.who:
		ctx, cancel := r.short()
		defer cancel()
		w.ctx, w.rank, how = ctx, g.peer, one(r.rng, waysToQuit)
	case g.peer: // it never calls the collective, which so does not end well
		how = one(r.rng, messagesInVain)
		fallthrough
	default:
		w.ctx, w.rank = r.ctx, (c.Rank()+1+r.rng.IntN(c.Size()-1))%c.Size()
	}
	r.pause()
	err = how.wait(w)
	if err := g.outcomeOfQuit(err, c.Rank()); err != nil {
		return fmt.Errorf("%s, rank %d: %w", how.name, w.rank, err)
	}
	if r.rng.IntN(2) == 0 && d.Barrier(r.ctx) == nil {
		return errors.New("a call of a broken communicator ended well")
	}
	d.Close(r.ctx) // returns the same error again
	return nil
}

// outcomeOfQuit checks how the wait of a rank has ended.
func (g *giveUp) outcomeOfQuit(err error, me int) error {
	var why *comm.RevokedError
	switch {
	case me == g.who && !errors.Is(err, errEnough):
		return fmt.Errorf("got %v, want %v", err, errEnough)
	case me != g.who && (!errors.As(err, &why) || why.Rank != g.who):
		return fmt.Errorf("got %v, want that rank %d gave up", err, g.who)
	}
	return nil
}

// A vainWait is a wait of one rank for another, in vain: sends and receives have different tags.
type vainWait struct {
	r    *runner
	ctx  context.Context
	c    *comm.Comm
	rank int
	b    comm.Buffer
}

const sendInVain, recvInVain = 1, 2

// A wayInVain is one way to wait so.
type wayInVain struct {
	name string
	wait func(w *vainWait) error
}

var (
	waysToQuit = []wayInVain{{"allreduce", (*vainWait).allreduce}}

	messagesInVain = []wayInVain{{"ssend", (*vainWait).ssend},
		{"issend", func(w *vainWait) error { return w.end(w.c.Issend(w.rank, sendInVain, w.b)) }},
		{"recv", func(w *vainWait) error { return w.recv(w.rank) }},
		{"recv from any", func(w *vainWait) error { return w.recv(comm.AnySource) }},
		{"irecv", func(w *vainWait) error { return w.end(w.c.Irecv(w.rank, recvInVain, w.b)) }},
		{"irecv from any", func(w *vainWait) error { return w.end(w.c.Irecv(comm.AnySource, recvInVain, w.b)) }},
		{"probe", func(w *vainWait) error { return w.probe(w.rank) }},
		{"probe from any", func(w *vainWait) error { return w.probe(comm.AnySource) }},
		{"iprobe", func(w *vainWait) error { return w.iprobe(w.rank) }},
		{"iprobe from any", func(w *vainWait) error { return w.iprobe(comm.AnySource) }},
	}

	waysInVain = append(waysToQuit, messagesInVain...)
)

func (w *vainWait) allreduce() error { return w.c.Allreduce(w.ctx, w.b, w.b, comm.BXor) }

func (w *vainWait) ssend() error { return w.c.Ssend(w.ctx, w.rank, sendInVain, w.b) }

// end waits for a request, or tests it until it is done.
func (w *vainWait) end(req comm.Request) error {
	if w.r.rng.IntN(2) == 0 {
		_, err := req.Wait(w.ctx)
		return err
	}
	for w.ctx.Err() == nil {
		if _, done, err := req.Test(); done {
			return err
		}
	}
	return context.Cause(w.ctx)
}

func (w *vainWait) recv(from int) error {
	_, err := w.c.Recv(w.ctx, from, recvInVain, w.b)
	return err
}

func (w *vainWait) probe(from int) error {
	_, err := w.c.Mprobe(w.ctx, from, recvInVain)
	return err
}

func (w *vainWait) iprobe(from int) error {
	for w.ctx.Err() == nil {
		if _, there, err := w.c.Iprobe(from, recvInVain); there || err != nil {
			return err
		}
	}
	return context.Cause(w.ctx)
}
