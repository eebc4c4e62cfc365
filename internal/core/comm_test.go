package core_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"

	"gompi/comm"
)

func TestMessagesOfADupAreItsOwn(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		if c.Rank() == 0 {
			for _, n := range messageSizes { // same tag, on both
				a, b := comm.Isend(d, 1, 0, integers[int64]().vector(1, n)),
					comm.Isend(c, 1, 0, integers[int64]().vector(2, n))
				if err := comm.WaitAll(ctx, a, b); err != nil {
					return err
				}
			}
			return comm.Barrier(ctx, c)
		}
		for _, n := range messageSizes { // against the order of the sends
			if _, ok, _ := c.Iprobe(0, 1); ok {
				return errors.New("probed a message that was never sent")
			}
			got := make([]int64, n)
			for seed, on := range map[int]*comm.Comm{2: c, 1: d} {
				if _, err := comm.Recv(ctx, on, comm.AnySource, comm.AnyTag, got); err != nil {
					return err
				}
				if err := equal(on.Name(), got, integers[int64]().vector(seed, n)); err != nil {
					return err
				}
			}
		}
		return comm.Barrier(ctx, c)
	})
}

// Ranks may use a new communicator at once, though others do not know it yet.
func TestMessagesWaitForTheirCommToBeMade(t *testing.T) {
	const p = 7
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		for i := range 20 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			to, from := (c.Rank()+1+i)%p, (c.Rank()+4*p-1-i)%p
			for _, n := range messageSizes[1:4] {
				out, in := integers[int64]().vector(c.Rank(), n), make([]int64, n)
				if _, err := comm.Sendrecv(ctx, d, to, i, out, from, i, in); err != nil {
					return err
				}
				if err := equal("early message", in, integers[int64]().vector(from, n)); err != nil {
					return err
				}
			}
			x := []int{1}
			if err := comm.Allreduce(ctx, d, x, x, comm.Sum); err != nil || x[0] != p {
				return fmt.Errorf("allreduce on %v: %d, %v", d, x[0], err)
			}
			if err := d.Close(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestOperationsOnAClosedCommAreErrClosed(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		x := comm.Of(make([]int, 2))
		before := d.Irecv(1-c.Rank(), 0, x)
		if err := errors.Join(d.Close(ctx), d.Close(ctx)); err != nil { // the second does nothing
			return err
		}
		persistent := d.BarrierInit()
		for name, err := range map[string]error{
			"outstanding": second(before.Wait(ctx)),
			"send":        d.Send(ctx, 0, 0, x),
			"ssend":       d.Ssend(ctx, 0, 0, x),
			"recv":        second(d.Recv(ctx, comm.AnySource, 0, x)),
			"sendrecv":    second(d.Sendrecv(ctx, 0, 0, x, 0, 0, comm.Of(make([]int, 2)))),
			"isend":       second(d.Isend(0, 0, x).Wait(ctx)),
			"probe":       second(d.Probe(ctx, 0, 0)),
			"improbe":     second(d.Improbe(0, 0)),
			"barrier":     d.Barrier(ctx),
			"iallreduce":  second(d.Iallreduce(x, x, comm.Sum).Wait(ctx)),
			"start":       second(persistent.Start().Wait(ctx)),
			"dup":         second(d.Dup(ctx)),
			"split":       second(d.Split(ctx, 0, 0)),
			"Err":         d.Err(),
		} {
			if !errors.Is(err, comm.ErrClosed) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
		return comm.Barrier(ctx, c) // the other communicator works
	})
}

// Close waits for what others have called; what this rank calls meanwhile fails.
func TestCollectivesWhileCloseWaitsAreErrClosed(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		x := []int{1}
		if c.Rank() == 1 {
			if _, err := comm.Recv(ctx, c, 0, 0, []int{}); err != nil { // until rank 0 has tried
				return err
			}
			return errors.Join(comm.Bcast(ctx, d, 0, x), d.Close(ctx))
		}
		if err := comm.Bcast(ctx, d, 0, x); err != nil {
			return err
		}
		closed := make(chan error)
		go func() { closed <- d.Close(ctx) }()
		synctest.Wait() // it waits for rank 1
		early := d.Barrier(ctx)
		queued := d.Ibarrier()
		if err := comm.Send(ctx, c, 1, 0, []int{}); err != nil {
			return err
		}
		for name, err := range map[string]error{"barrier": early, "ibarrier": second(queued.Wait(ctx))} {
			if !errors.Is(err, comm.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
		return <-closed
	})
}

func TestWorldMayBeClosedBeforeWhatCameFromIt(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		if err := comm.Barrier(ctx, c); !errors.Is(err, comm.ErrClosed) {
			return fmt.Errorf("barrier on the closed world: %v", err)
		}
		if err := comm.Barrier(ctx, d); err != nil {
			return err
		}
		return d.Close(ctx) // and this rank has left
	})
}

// What was sent before the last Close arrives, though its receive comes later.
func TestCloseDeliversWhatWasSent(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		const n = 50
		if c.Rank() == 0 {
			for i := range n {
				if err := comm.Send(ctx, c, 1, i, integers[int64]().vector(i, 100*i)); err != nil {
					return err
				}
			}
			return nil
		}
		synctest.Wait() // the other has left
		got := make([]int64, 100*n)
		for i := n - 1; i >= 0; i-- {
			if _, err := comm.Recv(ctx, c, 0, i, got); err != nil {
				return err
			}
			if err := equal("late", got[:100*i], integers[int64]().vector(i, 100*i)); err != nil {
				return err
			}
		}
		if _, err := comm.Recv(ctx, c, 0, 0, got); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("one message too many: got %v, want ErrLeft", err)
		}
		if err := comm.Send(ctx, c, 0, 0, got); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("send to a rank that left: got %v, want ErrLeft", err)
		}
		return nil
	})
}

func TestManyCommsComeAndGo(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		for i := range 300 {
			d, err := c.Split(ctx, 0, i*c.Rank())
			if err != nil {
				return err
			}
			x := []int{1}
			if err := comm.Allreduce(ctx, d, x, x, comm.Sum); err != nil || x[0] != 3 {
				return fmt.Errorf("round %d: %d, %v", i, x[0], err)
			}
			d.Close(ctx)
		}
		return nil
	})
}

// A second Close does nothing, after a failure too: it does not count for another
// communicator.
func TestBrokenCommMayBeClosedTwice(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			short, cancel := soon(ctx)
			defer cancel()
			if err := comm.Barrier(short, c); !errors.Is(err, errEnough) {
				return fmt.Errorf("got %v, want %v", err, errEnough)
			}
		} else if _, err := comm.Recv(ctx, c, 0, 0, []int{}); !errors.Is(err, comm.ErrRevoked) {
			return fmt.Errorf("got %v, want ErrRevoked", err)
		}
		for range 3 {
			if err := c.Close(ctx); err != nil { // the other one is open: only its Close tells
				return err
			}
		}
		if err := comm.Barrier(ctx, d); err != nil {
			return err
		}
		return d.Close(ctx)
	})
}

func TestCloseFromManyGoroutines(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		inside := make(chan error)
		go func() { inside <- second(comm.Recv(ctx, c, comm.AnySource, 0, []int{})) }()
		synctestWait(c, 0)
		if c.Rank() > 0 {
			if err := comm.Ssend(ctx, c, 0, 5, []int{}); err != nil { // until all others sleep
				return err
			}
		} else if err := errors.Join(second(comm.Recv(ctx, c, 1, 5, []int{})),
			second(comm.Recv(ctx, c, 2, 5, []int{}))); err != nil {
			return err
		}
		errs := make(chan error)
		for range 4 {
			go func() { errs <- c.Close(ctx) }()
		}
		for range 4 {
			if err := <-errs; err != nil {
				return err
			}
		}
		if err := <-inside; !errors.Is(err, comm.ErrClosed) && !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("receive that Close interrupted: %v", err)
		}
		return nil
	})
}
