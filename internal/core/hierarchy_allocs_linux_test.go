//go:build !race

package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
)

func TestHierarchicalCollectivesAllocateNothing(t *testing.T) {
	for _, n := range []int{2, 300_000} { // the last in chunks
		if testing.Short() && n > 2 {
			continue
		}
		on := func(fn rankFunc) []error { return hierarchically(t, []int32{0, 0, 1, 1}, fn) }
		what := fmt.Sprintf("%d elements", n)
		wantPerStep(t, what, 3*tolerated, on, func(ctx context.Context, c *comm.Comm) (float64, error) {
			x, y := make([]float32, n), make([]float32, n)
			return perStep(ctx, c, func() error {
				return errors.Join(comm.Allreduce(ctx, c, x, y, comm.Sum), comm.Bcast(ctx, c, 3, y),
					comm.Barrier(ctx, c))
			})
		})
	}
}
