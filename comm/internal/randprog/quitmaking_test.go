package randprog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/comm"
)

// quitMaking has one rank give up while all make a communicator, some of them late. It may have it
// in time: then all have it. Else the ranks that have it get an error from it. No rank gets numbers
// that are not its.
func (g *giveUp) quitMaking(r *runner, c *comm.Comm) error {
	of, err := c.Dup(r.ctx)
	if err != nil {
		return err
	}
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if g.createsGroup() { // whose members wait on for one that gives up
		ctx, cancel = context.WithTimeoutCause(r.ctx, 100*time.Millisecond, errEnough)
	}
	if c.Rank() == g.who {
		cancel()
		ctx, cancel = r.short()
	} else if c.Rank() == g.peer || mix(g.seed)%3 == 0 {
		r.pause()
	}
	made, making := g.make(ctx, of)
	cancel()
	var using error
	sum := []int{c.Rank()}
	if making == nil {
		using = comm.Allreduce(r.ctx, made, sum, sum, comm.Sum)
	}
	all := make([]bool, c.Size())
	if err := comm.Allgather(r.ctx, c, []bool{making == nil}, all); err != nil {
		return err
	}
	err = g.outcome(!slices.Contains(all, false), making, using, sum[0], c)
	if making == nil {
		made.Close(r.ctx) // returns the same error again
	}
	of.Close(r.ctx) // likewise
	return err
}

// make makes a communicator of all ranks of c in one of the ways there are.
func (g *giveUp) make(ctx context.Context, c *comm.Comm) (*comm.Comm, error) {
	switch {
	case g.createsGroup():
		return c.CreateGroup(ctx, c.Group(), g.id)
	case g.seed%4 == 0:
		return c.Dup(ctx)
	case g.seed%4 == 1:
		return c.Split(ctx, 0, -c.Rank())
	}
	return c.Create(ctx, c.Group())
}

func (g *giveUp) createsGroup() bool { return g.seed%4 == 3 }

// outcome checks how making and using a communicator of the ranks of c has ended on this rank. made
// says that all have it, sum is the result of its allreduce.
func (g *giveUp) outcome(made bool, making, using error, sum int, c *comm.Comm) error {
	want := comm.ErrRevoked
	if c.Rank() == g.who {
		want = errEnough
	}
	switch n := c.Size(); {
	case making != nil:
		if !errors.Is(making, want) && !(g.createsGroup() && errors.Is(making, errEnough)) {
			return fmt.Errorf("makes a communicator: got %v, want %v", making, want)
		}
	case !made && !errors.Is(using, comm.ErrRevoked):
		return fmt.Errorf("a communicator that not all have: got %d, %v; want %v", sum, using, comm.ErrRevoked)
	case made && (using != nil || sum != n*(n-1)/2):
		return fmt.Errorf("a communicator that all have: got %d, %v; want %d", sum, using, n*(n-1)/2)
	}
	return nil
}
