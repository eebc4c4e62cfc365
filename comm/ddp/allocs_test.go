//go:build !race

// The race detector allocates on its own.

package ddp

import (
	"context"
	"math"
	"runtime"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// A step makes no work for the collector, whatever averages. The runtime itself may allocate now
// and then, so the best of some tries counts.
func TestStepsAllocateNothing(t *testing.T) {
	const warmUp, steps, tries, tolerated = 20, 100, 6, 0.5
	for name, opts := range map[string]Options{
		"average": {}, "small buckets": {FirstBucketBytes: 4, BucketBytes: 4}, "hook": {Hook: meanHook{}},
		"exact": {Quantum: 0.5}, "shards": {Shard: true}, "alone": {LocalSteps: 5}, "unused": {FindUnused: true},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, 300, 200)
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			run := func(n int) error {
				for s := range n {
					if _, err := d.More(ctx, true); err != nil {
						return err
					}
					if err := step(ctx, d, params, c.Rank(), s); err != nil {
						return err
					}
				}
				return comm.Barrier(ctx, c)
			}
			if err := run(warmUp); err != nil {
				return err
			}
			least := math.Inf(1)
			for range tries {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := run(steps); err != nil {
					return err
				}
				runtime.ReadMemStats(&after)
				least = min(least, float64(after.Mallocs-before.Mallocs)/steps)
			}
			if least > tolerated {
				t.Errorf("%s: %.2f allocations per step, want none", name, least)
			}
			return d.Close(ctx)
		})
	}
}
