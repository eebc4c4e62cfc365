//go:build !race

package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
	"gompi/comm/window"
)

// Each of two ranks puts, flushes, and gets what the other puts: they cannot both be too early.
// The race detector would see races, which are there on purpose.
func TestLitmusStoreBuffering(t *testing.T) {
	litmusTest(t, func(ctx context.Context, c *comm.Comm, w *window.Window, i int64) error {
		got := []int64{i}
		if me := c.Rank(); me < 2 {
			err := errors.Join(w.RLock(ctx, 0), w.RLock(ctx, 1), w.Put(me, 0, one(i)), w.Flush(ctx, me),
				w.Get(1-me, 0, comm.Of(got)), w.Flush(ctx, 1-me), w.UnlockAll(ctx))
			if err != nil {
				return err
			}
		}
		seen := make([]int64, c.Size())
		if err := comm.Allgather(ctx, c, got, seen); err != nil {
			return err
		}
		if seen[0] != i && seen[1] != i {
			return fmt.Errorf("ranks 0 and 1 got %d and %d of what the other had put before", seen[0], seen[1])
		}
		return nil
	})
}
