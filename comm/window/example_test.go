package window_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/window"
)

// Ranks take tasks from a counter that rank 0 has, and need not ask it for them.
func Example() {
	const tasks = 10
	work := func(ctx context.Context, c *comm.Comm) error {
		w, counter, err := window.Allocate[int64](ctx, c, 1)
		if err != nil {
			return err
		}
		if err := w.LockAll(ctx); err != nil {
			return err
		}
		next := make([]int64, 1)
		for next[0] < tasks {
			err := w.FetchAndOp(0, 0, comm.Of([]int64{1}), comm.Of(next), comm.Sum)
			if err := errors.Join(err, w.Flush(ctx, 0)); err != nil {
				return err
			}
			// next[0] is this rank's task, if it is less than tasks
		}
		if err := errors.Join(w.UnlockAll(ctx), comm.Barrier(ctx, c)); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("the counter is at", counter[0], "when each of 4 ranks has found that there is no task left")
		}
		return w.Free(ctx)
	}
	if err := errors.Join(commtest.Ranks(context.Background(), 4, comm.Config{}, work)...); err != nil {
		fmt.Println(err)
	}
	// Output: the counter is at 14 when each of 4 ranks has found that there is no task left
}

// Each rank has a matrix, and stores its rank in a column of the next one's.
func ExampleLay() {
	const rows, cols = 2, 3
	work := func(ctx context.Context, c *comm.Comm) error {
		w, matrix, err := window.Allocate[int32](ctx, c, rows*cols)
		if err != nil {
			return err
		}
		layout, err := comm.Vector(rows, 1, cols)
		if err != nil {
			return err
		}
		column, err := window.Lay[int32](w, layout)
		if err != nil {
			return err
		}
		me, next := int32(c.Rank()+1), (c.Rank()+1)%c.Size()
		err = errors.Join(w.Fence(ctx), column.Put(next, 2, comm.Of([]int32{me, me})), w.Fence(ctx))
		if c.Rank() == 1 {
			fmt.Println(matrix[:cols], matrix[cols:])
		}
		return errors.Join(err, w.Free(ctx))
	}
	if err := errors.Join(commtest.Ranks(context.Background(), 2, comm.Config{}, work)...); err != nil {
		fmt.Println(err)
	}
	// Output: [0 0 1] [0 0 1]
}
