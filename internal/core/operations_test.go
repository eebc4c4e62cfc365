package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// everyWayDo runs fn on ranks that are connected in each way.
func everyWayDo(t *testing.T, ranks int, fn rankFunc) {
	for way, run := range everyWay {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			err := errors.Join(run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				ctx, cancel := context.WithTimeout(ctx, testTimeout)
				defer cancel()
				return fn(ctx, c)
			})...)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A call with a function is done, started, and started again while it is under way.
func TestTheDoorDoesAnyCall(t *testing.T) {
	everyWayDo(t, 3, func(ctx context.Context, c *comm.Comm) error {
		const n = 5
		op := call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {
			compose(mem.Slice[affine](acc), mem.Slice[affine](in))
		}}
		in := affineOf(c.Rank(), n)
		out := [4][]affine{make([]affine, n), make([]affine, n), make([]affine, n), make([]affine, n)}
		var o call.Call
		o.Allreduce(comm.Of(in), comm.Of(out[0]), op)
		if err := inside(c).Do(ctx, &o); err != nil {
			return err
		}
		var requests [3]comm.Request
		for i := range requests {
			o.Recv = comm.Of(out[i+1])
			requests[i] = comm.Request(inside(c).Start(&o))
		}
		if err := comm.WaitAll(ctx, requests[:]...); err != nil {
			return err
		}
		for i := range out {
			if err := equal(fmt.Sprint("recv of call ", i), out[i], composed(c.Size(), n)); err != nil {
				return err
			}
		}
		o.Send = comm.Of(in[:1])
		if err := inside(c).Do(ctx, &o); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("unequal buffers: got %v, want %v", err, comm.ErrArgument)
		}
		return c.Barrier(ctx)
	})
}

// A Dup is started on one rank before the others come to it, and there may be several.
func TestADupIsStartedAndFinished(t *testing.T) {
	everyWayDo(t, 3, func(ctx context.Context, c *comm.Comm) error {
		var requests [2]core.Request
		var finish [2]func(error) (*core.Comm, error)
		begin := func() {
			for i := range requests {
				requests[i], finish[i] = inside(c).StartDup()
			}
		}
		word := []int64{int64(c.Rank())}
		if c.Rank() == 0 {
			begin()
			for to := 1; to < c.Size(); to++ {
				if err := c.Send(ctx, to, 1, comm.Of(word)); err != nil {
					return err
				}
			}
		} else {
			if _, err := c.Recv(ctx, 0, 1, comm.Of(word)); err != nil {
				return err
			}
			begin()
		}
		if err := core.WaitAll(ctx, requests[:]); err != nil {
			return err
		}
		for i := range finish {
			made, err := finish[i](nil)
			if err != nil {
				return err
			}
			d := (*comm.Comm)(made)
			if err := errors.Join(d.Barrier(ctx), d.Close(ctx)); err != nil {
				return fmt.Errorf("duplicate %d: %w", i, err)
			}
		}
		return c.Barrier(ctx)
	})
}

// A pending is what a rank has under way on a communicator when it closes it.
type pending struct {
	start func(d *comm.Comm) comm.Request // on rank 0
	meet  func(ctx context.Context, d *comm.Comm) error
}

var long = bytes.Repeat([]byte("gompi mpi"), 8<<20/9)

// pendingOps are what MPI_Comm_free lets end. They end when rank 1, later, does its part.
func pendingOps() map[string]pending {
	receive := func(n int) func(ctx context.Context, d *comm.Comm) error {
		return func(ctx context.Context, d *comm.Comm) error {
			got := make([]byte, n)
			if _, err := comm.Recv(ctx, d, 0, 3, got); err != nil {
				return err
			}
			return equal("what was sent", got, long[:n])
		}
	}
	return map[string]pending{
		"long send":  {func(d *comm.Comm) comm.Request { return comm.Isend(d, 1, 3, long) }, receive(len(long))},
		"short send": {func(d *comm.Comm) comm.Request { return comm.Isend(d, 1, 3, long[:8]) }, receive(8)},
		"ssend":      {func(d *comm.Comm) comm.Request { return comm.Issend(d, 1, 3, long[:8]) }, receive(8)},
		"receive": {func(d *comm.Comm) comm.Request { return comm.Irecv(d, 1, 3, make([]byte, 8)) },
			func(ctx context.Context, d *comm.Comm) error { return comm.Send(ctx, d, 0, 3, long[:8]) }},
		"barrier": {func(d *comm.Comm) comm.Request { return d.Ibarrier() },
			func(ctx context.Context, d *comm.Comm) error { return d.Barrier(ctx) }},
		"collectives": {func(d *comm.Comm) comm.Request {
			d.Iallreduce(comm.Of([]int{1}), comm.Of([]int{0}), comm.Sum)
			return d.Ibcast(0, comm.Of(long))
		}, func(ctx context.Context, d *comm.Comm) error {
			x, got := []int{2}, make([]byte, len(long))
			err := errors.Join(comm.Allreduce(ctx, d, x, x, comm.Sum), comm.Bcast(ctx, d, 0, got))
			return errors.Join(err, equal("sum", x, []int{3}), equal("bcast", got, long))
		}},
	}
}

// Rank 0 closes a communicator with an operation under way. That ends when rank 1 does its part,
// which is after the close, and the communicator is closed then.
func TestCloseWhenIdleLetsOperationsEnd(t *testing.T) {
	defer core.PartWithin(time.Hour)() // who waits for other ranks in vain does not end
	for name, p := range pendingOps() {
		t.Run(name, func(t *testing.T) {
			everyWayDo(t, 2, func(ctx context.Context, c *comm.Comm) error { return p.closed(ctx, c) })
		})
	}
}

func (p pending) closed(ctx context.Context, c *comm.Comm) error {
	d, err := c.Dup(ctx)
	if err != nil {
		return err
	}
	var r comm.Request
	var closed <-chan error
	if c.Rank() == 0 {
		r = p.start(d)
		closed = inside(d).CloseWhenIdle()
	}
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	if c.Rank() == 1 {
		if err := p.meet(ctx, d); err != nil {
			return err
		}
		closed = inside(d).CloseWhenIdle()
	} else if _, err := r.Wait(ctx); err != nil {
		return err
	}
	select {
	case err = <-closed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !errors.Is(d.Err(), comm.ErrClosed) {
		return fmt.Errorf("the communicator is not closed: %v, %v", d.Err(), err)
	}
	return errors.Join(err, c.Barrier(ctx))
}

// What waits for a rank that does not do its part ends when the communicator breaks.
func TestCloseWhenIdleEndsWhenTheCommBreaks(t *testing.T) {
	everyWayDo(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return errors.Join(c.Barrier(ctx), d.Close(ctx), c.Barrier(ctx))
		}
		r := comm.Isend(d, 1, 3, long)
		closed := inside(d).CloseWhenIdle()
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if _, err := r.Wait(ctx); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("got %v, want %v", err, comm.ErrLeft)
		}
		select {
		case err = <-closed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		return errors.Join(err, c.Barrier(ctx))
	})
}

// A rank makes a communicator of its own, and two ranks one of both, from a duplicate of the world
// in which the others do nothing: they wait for a message on the world.
func TestGroupsAreMadeWhileOthersDoSomethingElse(t *testing.T) {
	everyWayDo(t, 4, func(ctx context.Context, c *comm.Comm) error {
		hidden, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			if _, err := comm.Recv(ctx, c, 3, 0, []int{0}); err != nil {
				return err
			}
			return errors.Join(c.Barrier(ctx), <-inside(hidden).CloseWhenIdle())
		}
		self, err := made(ctx, hidden, 1, c.Rank())
		if err != nil {
			return err
		}
		if err := sumsRanks(ctx, hidden, self, c.Rank()); err != nil {
			return err
		}
		if c.Rank() != 2 {
			both, err := made(ctx, hidden, 2, 3, 1)
			if err != nil {
				return err
			}
			if err := sumsRanks(ctx, hidden, both, 3, 1); err != nil {
				return err
			}
			err = <-inside(both).CloseWhenIdle()
			if err != nil {
				return err
			}
		}
		if c.Rank() == 3 {
			if err := comm.Send(ctx, c, 0, 0, []int{1}); err != nil {
				return err
			}
		}
		return errors.Join(<-inside(self).CloseWhenIdle(), c.Barrier(ctx), <-inside(hidden).CloseWhenIdle())
	})
}
