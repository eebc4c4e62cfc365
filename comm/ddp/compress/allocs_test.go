//go:build !race

// The race detector allocates on its own.

package compress

import (
	"context"
	"math"
	"runtime"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// tolerated is the number of the runtime's own allocations in a step of all ranks together, for
// goroutines that go to sleep. A hook would allocate once in every step, on each rank.
const tolerated = 0.5

func TestStepsAllocateNothing(t *testing.T) {
	const ranks, warmUp, steps, tries = 2, 20, 50, 6
	for name, newHook := range hooks(t) {
		t.Run(name, func(t *testing.T) {
			least := math.Inf(1)
			commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				h, b := newHook(), newBucket([]int{30, 50}, []int{1000})
				run := func(n int) error {
					for range n {
						if err := h.Average(ctx, c, b); err != nil {
							return err
						}
						b.Step++
					}
					return comm.Barrier(ctx, c)
				}
				if err := run(warmUp); err != nil {
					return err
				}
				for range tries {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					if err := run(steps); err != nil {
						return err
					}
					runtime.ReadMemStats(&after)
					if c.Rank() == 0 {
						least = min(least, float64(after.Mallocs-before.Mallocs)/steps)
					}
				}
				return nil
			})
			if least > tolerated {
				t.Errorf("%.2f allocations in a step, want none", least)
			}
		})
	}
}
