package randprog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/comm"
)

// A giveUp is something that a rank begins and does not go through with.
type giveUp struct {
	header
	what      string
	who, peer int // ranks of the communicator
	n         int // bytes of the messages
}

// Ways to give up, and the required results.
const (
	recvNothing  = "a receive of nothing"       // fails, and breaks nothing
	probeNothing = "a probe for nothing"        // likewise
	cancelled    = "a cancelled receive"        // likewise
	sendNothing  = "a send to nobody"           // likewise
	raceCancel   = "a receive cancelled or not" // either gets the message, or leaves it
	raceSend     = "a send given up or not"     // it is received, or fails
	waitLess     = "a wait that is given up"    // the receive continues
	quit         = "a communicator broken"      // all that wait in it get the reason; no other breaks
	quitMaking   = "a communicator given up"    // all get one that works, or no rank does
)

var waysToGiveUp = []string{recvNothing, probeNothing, cancelled, sendNothing, raceCancel, raceSend, waitLess,
	quit, quitMaking}

func (g *giveUp) String() string {
	return fmt.Sprintf("%s by rank %d, %d bytes, peer %d", g.what, g.who, g.n, g.peer)
}

// tag is one that no other unit uses.
func (g *giveUp) tag() int { return 1_000_000 + g.id }

var errEnough = errors.New("had enough")

// short returns a context that ends soon, or has ended.
func (r *runner) short() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(r.ctx, time.Duration(r.rng.IntN(4))*500*time.Microsecond, errEnough)
}

func (g *giveUp) run(r *runner, c *comm.Comm) error {
	if c == nil {
		return nil
	}
	switch g.what {
	case quit:
		return g.quit(r, c)
	case quitMaking:
		return g.quitMaking(r, c)
	case sendNothing, raceSend: // apart from receives of any tag
		d, err := c.Dup(r.ctx)
		if err != nil {
			return err
		}
		if g.what == raceSend {
			err = g.raceSend(r, d)
		} else if d.Rank() == g.who {
			err = g.begin(r, d)
		}
		if err == nil {
			err = d.Barrier(r.ctx) // else the peer would leave
		}
		return errors.Join(err, d.Close(r.ctx))
	}
	me := c.Rank()
	if me == g.who {
		return g.begin(r, c)
	}
	if me != g.peer {
		return nil
	}
	switch g.what {
	case raceCancel:
		return c.Send(r.ctx, g.who, g.tag(), comm.Of(g.content()))
	case waitLess:
		if _, err := c.Recv(r.ctx, g.who, g.tag(), comm.Of([]byte{})); err != nil {
			return err
		}
		return c.Ssend(r.ctx, g.who, g.tag(), comm.Of(g.content()))
	}
	return nil
}

// raceSend has a rank give up a send, and its peer the receive. Either both go well or none does.
func (g *giveUp) raceSend(r *runner, c *comm.Comm) error {
	ctx, cancel := r.short()
	defer cancel()
	peer, b := g.peer, make([]byte, g.n)
	var err error
	switch c.Rank() {
	case g.who:
		err = c.Ssend(ctx, g.peer, g.tag(), comm.Of(g.content()))
	case g.peer:
		peer = g.who
		_, err = c.Recv(ctx, g.who, g.tag(), comm.Of(b))
	default:
		return nil
	}
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("got %v, want %v", err, errEnough)
	}
	mine, theirs := []bool{err == nil}, []bool{false}
	after := g.tag() + 1 // which the message does not have
	if _, err := c.Sendrecv(r.ctx, peer, after, comm.Of(mine), peer, after, comm.Of(theirs)); err != nil {
		return err
	}
	if mine[0] != theirs[0] {
		return fmt.Errorf("it went well: %v; for rank %d: %v", mine[0], peer, theirs[0])
	}
	if !mine[0] || c.Rank() == g.who {
		return nil
	}
	return differ("received", comm.Of(b).Type(), b, g.content())
}

func (g *giveUp) content() []byte {
	b := make([]byte, g.n)
	for i := range b {
		b[i] = byte(mix(g.seed) + uint64(i)*7)
	}
	return b
}

// begin is the part of the rank that gives up.
func (g *giveUp) begin(r *runner, c *comm.Comm) error {
	b := make([]byte, g.n)
	ctx, cancel := r.short()
	defer cancel()
	gaveUp := func(err error) error {
		if !errors.Is(err, errEnough) {
			return fmt.Errorf("got %v, want %v", err, errEnough)
		}
		return nil
	}
	switch g.what {
	case recvNothing:
		_, err := c.Recv(ctx, g.peer, g.tag(), comm.Of(b))
		return gaveUp(err)
	case sendNothing:
		return gaveUp(c.Ssend(ctx, g.peer, g.tag(), comm.Of(b)))
	case probeNothing:
		if r.rng.IntN(2) == 0 {
			_, err := c.Mprobe(ctx, g.peer, g.tag())
			return gaveUp(err)
		}
		_, err := c.Probe(ctx, g.peer, g.tag())
		return gaveUp(err)
	case waitLess:
		req := c.Irecv(g.peer, g.tag(), comm.Of(b))
		_, err := req.Wait(ctx)
		if err := gaveUp(err); err != nil {
			return err
		}
		if err := c.Send(r.ctx, g.peer, g.tag(), comm.Of([]byte{})); err != nil {
			return err
		}
		return g.got(req.Wait(r.ctx))(b)
	}
	req := c.Irecv(g.peer, g.tag(), comm.Of(b))
	r.pause()
	if !req.Cancel() {
		if g.what == cancelled {
			return errors.New("a receive that nothing matches is not cancelled")
		}
		return g.got(req.Wait(r.ctx))(b)
	}
	if _, err := req.Wait(r.ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a cancelled receive: got %v, want %v", err, context.Canceled)
	}
	if g.what == cancelled {
		return nil
	}
	return g.got(c.Recv(r.ctx, g.peer, g.tag(), comm.Of(b)))(b)
}

// got checks a receive of the content into a buffer.
func (g *giveUp) got(st comm.Status, err error) func(b []byte) error {
	return func(b []byte) error {
		if err != nil || st.Bytes != g.n || st.Source != g.peer || st.Tag != g.tag() {
			return fmt.Errorf("got %+v, %v; want %d bytes from rank %d", st, err, g.n, g.peer)
		}
		return differ("received", comm.Of(b).Type(), b, g.content())
	}
}
