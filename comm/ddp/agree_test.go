package ddp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp/sampler"
)

func TestMeanCountsEverySampleOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 10, 101} {
		commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
			lo, hi := sampler.Shard(n, c.Rank(), c.Size())
			var sum float64
			for i := lo; i < hi; i++ {
				sum += float64(i)
			}
			got, err := Mean(ctx, c, sum, hi-lo)
			if err != nil {
				return err
			}
			if want := float64(n-1) / 2; got != want && n > 0 || n == 0 && !math.IsNaN(got) {
				return fmt.Errorf("mean of 0..%d is %v, want %v", n-1, got, want)
			}
			return nil
		})
	}
}

func TestErrorOfRankZeroIsEveryRanks(t *testing.T) {
	cause := errors.New("disk full")
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		calls := 0
		err := OnRankZero(ctx, c, func() error { calls++; return cause })
		if want := c.Rank() == 0; (calls == 1) != want || errors.Is(err, cause) != want {
			return fmt.Errorf("rank %d: %d calls, error %v", c.Rank(), calls, err)
		}
		if err := wantError(err, "disk full"); err != nil {
			return err
		}
		err = RankZeroFirst(ctx, c, func() error { calls++; return cause })
		if err := wantError(err, "disk full"); err != nil {
			return err
		}
		if c.Rank() != 0 && calls != 0 {
			return fmt.Errorf("rank %d went on after rank 0 failed", c.Rank())
		}
		if err := OnRankZero(ctx, c, func() error { return errors.New("") }); err == nil {
			return fmt.Errorf("rank %d: an error without text is lost", c.Rank())
		}
		return OnRankZero(ctx, c, func() error { return nil })
	})
}

func TestRankZeroIsDoneBeforeTheOthersBegin(t *testing.T) {
	var done atomic.Bool
	commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
		own := fmt.Errorf("rank %d's own", c.Rank())
		err := RankZeroFirst(ctx, c, func() error {
			if c.Rank() == 0 {
				done.Store(true)
				return nil
			}
			if !done.Load() {
				return errors.New("began before rank 0 was done")
			}
			return own
		})
		if c.Rank() == 0 {
			return err
		}
		if err != own {
			return err
		}
		return nil
	})
}
