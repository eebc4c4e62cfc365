package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/window"
)

// A rank may write to its part behind the fence that ends the others' Gets. -race reports no conflict
// with the answers to these.
func TestARankMayWriteBehindAFence(t *testing.T) {
	if err := errors.Join(commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		mine, got := make([]int64, 1000), make([]int64, 1000)
		w, err := window.Create(ctx, c, mine)
		if err != nil {
			return err
		}
		for round := range int64(3) {
			if err := errors.Join(w.Fence(ctx), w.Get(1-c.Rank(), 0, comm.Of(got)), w.Fence(ctx)); err != nil {
				return err
			}
			for i := range mine {
				if got[i] != round {
					return fmt.Errorf("round %d: element %d is %d", round, i, got[i])
				}
				mine[i]++
			}
		}
		return w.Free(ctx)
	})...); err != nil {
		t.Error(err)
	}
}
