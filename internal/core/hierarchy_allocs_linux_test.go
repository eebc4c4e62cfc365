//go:build !race

package core_test

import (
	"context"
	"errors"
	"testing"

	"gompi/comm"
)

func TestHierarchicalCollectivesAllocateNothing(t *testing.T) {
	for _, n := range []int{2, 300_000} { // the last in chunks
		if testing.Short() && n > 2 {
			continue
		}
		var got float64
		err := errors.Join(hierarchically(t, []int32{0, 0, 1, 1}, func(ctx context.Context, c *comm.Comm) error {
			x, y := make([]float32, n), make([]float32, n)
			a, err := perStep(ctx, c, func() error {
				return errors.Join(comm.Allreduce(ctx, c, x, y, comm.Sum), comm.Bcast(ctx, c, 3, y), comm.Barrier(ctx, c))
			})
			if c.Rank() == 0 {
				got = a
			}
			return err
		})...)
		if err != nil {
			t.Fatal(err)
		}
		if got > 3*tolerated {
			t.Errorf("%d elements: %.2f allocations per step, want none", n, got)
		}
	}
}
