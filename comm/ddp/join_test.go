package ddp

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
)

// Ranks have unequal numbers of batches, one has none. Ended ranks add zeros, and all make as many
// steps as the longest.
func TestJobEndsWithTheLongestRank(t *testing.T) {
	batches := []int{3, 0, 5, 1}
	for name, opts := range map[string]Options{"average": {}, "small buckets": {FirstBucketBytes: 4, BucketBytes: 4},
		"passes": {Accumulate: 2}, "hook": {Hook: meanHook{}}} {
		for _, size := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
						return joined(ctx, c, opts, batches[:size])
					})
				})
			})
		}
	}
}

func joined(ctx context.Context, c *comm.Comm, opts Options, batches []int) error {
	params := testParams(0, 10, 20)
	d, err := New(ctx, c, params, opts)
	if err != nil {
		return err
	}
	steps := 0
	for ; ; steps++ {
		has := steps < batches[c.Rank()]
		more, err := d.More(ctx, has)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		d.ZeroGrad()
		for range max(1, opts.Accumulate) {
			for i, p := range slices.Backward(params) {
				if has {
					p.Grad[3] += gradient(c.Rank(), steps, i, 3)
					d.Ready(i)
				}
			}
		}
		d.SkipRest()
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if err := checkJoined(d, params, batches, steps); err != nil {
			return err
		}
	}
	if want := slices.Max(batches); steps != want {
		return fmt.Errorf("%d steps, want %d", steps, want)
	}
	return d.Close(ctx)
}

func checkJoined(d *DDP, params []*Param, batches []int, step int) error {
	active := 0
	for i, p := range params {
		var sum float32
		active = 0
		for rank, n := range batches {
			if step < n {
				sum += gradient(rank, step, i, 3) * float32(d.opts.Accumulate)
				active++
			}
		}
		if want := sum / float32(len(batches)); p.Grad[3] != want {
			return fmt.Errorf("step %d: %s is %v, want %v", step, p.Name, p.Grad[3], want)
		}
	}
	if d.Active() != active {
		return fmt.Errorf("step %d: %d ranks were active, want %d", step, d.Active(), active)
	}
	return nil
}

func TestMoreIsCalledOncePerStep(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 1), Options{})
		if err != nil {
			return err
		}
		if more, err := d.More(ctx, true); !more || err != nil {
			return fmt.Errorf("more is %v, %v", more, err)
		}
		_, err = d.More(ctx, true)
		if err := wantError(err, "More was called twice in one step"); err != nil {
			return err
		}
		d.Ready(0)
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if more, err := d.More(ctx, false); more || err != nil {
			return fmt.Errorf("more is %v, %v", more, err)
		}
		return d.Close(ctx)
	})
}

func TestMoreWaitsForNoRankThatDied(t *testing.T) {
	errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 1), Options{})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return fmt.Errorf("a reason of its own")
		}
		_, err = d.More(ctx, false)
		d.Close(ctx)
		return err
	})
	if err := wantError(errs[0], "ddp: More:", "rank 1", "a reason of its own"); err != nil {
		t.Error(err)
	}
}
