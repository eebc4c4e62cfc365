package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
)

// A rank that only sends may be any number of collectives ahead, and those behind
// it catch up in time that grows with the number, not with its square.
func TestRootMayRunFarAhead(t *testing.T) {
	// More than a rank has credit for at another; seconds if every call looked at all of them.
	const n = 20_000
	start := time.Now()
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 { // begins when the other has ended
			if _, err := comm.Recv(ctx, c, 0, 0, []int{}); err != nil {
				return err
			}
		}
		for i := range n {
			x := []int{i}
			if c.Rank() == 1 {
				x[0] = -1
			}
			if err := comm.Bcast(ctx, c, 0, x); err != nil {
				return err
			}
			if x[0] != i {
				return fmt.Errorf("bcast %d: got %d", i, x[0])
			}
		}
		if c.Rank() == 0 {
			return comm.Send(ctx, c, 1, 0, []int{})
		}
		return nil
	})
	if d := time.Since(start); d > time.Minute {
		t.Errorf("%d broadcasts: %v", n, d)
	}
}

// What a rank far ahead has called is compared when the others come to it.
func TestMismatchFarAheadIsFound(t *testing.T) {
	const n = 500
	outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 2 {
			synctest.Wait()
		}
		var err error
		for i := 0; i < n && err == nil; i++ {
			err = comm.Bcast(ctx, c, 0, make([]int, 1))
		}
		last := try{"bcast", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Bcast(ctx, c, 0, make([]int, 2))
		}}
		if c.Rank() == 2 {
			last = try{"barrier", func(ctx context.Context, c *comm.Comm, n int) error { return comm.Barrier(ctx, c) }}
		}
		if err == nil {
			err = last.call(ctx, c, 0)
		}
		if err == nil {
			err = next(ctx, c)
		}
		if problem := wrongMismatch(err, 2, "bcast", "barrier"); problem != nil {
			t.Errorf("rank %d: %v", c.Rank(), problem)
		}
		return nil
	})
}

// The budget bounds what a rank may have sent ahead: then it waits.
func TestPayloadSentAheadIsBounded(t *testing.T) {
	const n, size = 100, 100 << 10 // 10 MB, the budget is 4
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			synctest.Wait() // the root has gone as far as it gets
			if st, ok, err := c.Iprobe(0, 0); ok || err != nil {
				return fmt.Errorf("the root has sent %d bytes that no rank received (%+v, %v)", n*size, st, err)
			}
		}
		for range n {
			if err := comm.Bcast(ctx, c, 0, make([]byte, size)); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			return comm.Send(ctx, c, 1, 0, []int{})
		}
		_, err := comm.Recv(ctx, c, 0, 0, []int{})
		return err
	})
}
