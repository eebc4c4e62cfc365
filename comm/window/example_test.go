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
