package ddp

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
)

// A bubble's time passes as the test says. Steps take longer the farther the buckets are from the
// best size, on one rank; the other is always faster, and finds another size the best.
func TestBucketsGetTheSizeThatIsFastestOnTheSlowestRank(t *testing.T) {
	const best = 2 << 20
	slow := map[int]time.Duration{256 << 10: 50, 512 << 10: 30, 1 << 20: 25, best: 20, 4 << 20: 22, 8 << 20: 40}
	lengths := []int{300, 1 << 18, 1 << 18, 1 << 18, 1 << 18, 1 << 18, 1 << 17, 70_000} // some 6 MiB
	synctest.Test(t, func(t *testing.T) {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, lengths...)
			d, err := New(ctx, c, params, Options{TuneBuckets: true})
			if err != nil {
				return err
			}
			var tried []int
			for s := range 50 {
				size := d.Stats().BucketBytes
				if len(tried) == 0 || tried[len(tried)-1] != size {
					tried = append(tried, size)
				}
				takes := time.Duration(size) // the fewer bytes the better
				if c.Rank() == 0 {
					takes = slow[size] * time.Second
					if s%5 == 3 {
						takes += time.Hour // one step was disturbed
					}
				}
				time.Sleep(takes)
				if err := step(ctx, d, params, c.Rank(), s); err != nil {
					return err
				}
				for i, p := range params {
					for j := range min(3, len(p.Grad)) {
						if want := average(2, s, i, j); p.Grad[j] != want {
							return fmt.Errorf("step %d with buckets of %d: %s is %v, want %v", s, size, p.Name,
								p.Grad[j], want)
						}
					}
				}
			}
			// The first step is with the default. 8 MiB and more are one bucket but for the first.
			if want := []int{25 << 20, 256 << 10, 1 << 20, best, 4 << 20, 8 << 20, best}; !slices.Equal(tried, want) {
				return fmt.Errorf("tried %v, want %v", tried, want)
			}
			return d.Close(ctx)
		})
	})
}

func TestTuningEndsAtOnceWhereAllSizesAreTheSame(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 3, 4)
		d, err := New(ctx, c, params, Options{TuneBuckets: true})
		if err != nil {
			return err
		}
		if err := step(ctx, d, params, c.Rank(), 0); err != nil {
			return err
		}
		if d.tuning != nil || d.Stats().Buckets != 1 {
			return fmt.Errorf("tuning is %+v with %d buckets", d.tuning, d.Stats().Buckets)
		}
		return d.Close(ctx)
	})
}
