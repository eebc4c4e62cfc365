package core_test

import (
	"context"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/stress"
)

func TestThousandsOfGoroutineRanks(t *testing.T) {
	n := 2048
	switch {
	case stress.Asked():
		n = 4096
	case testing.Short():
		n = 512
	}
	start := time.Now()
	commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
		sum := make([]int, 2)
		if err := comm.Allreduce(ctx, c, []int{c.Rank(), 1}, sum, comm.Sum); err != nil {
			return err
		}
		if err := equal("allreduce", sum, []int{n * (n - 1) / 2, n}); err != nil {
			return err
		}
		return comm.Barrier(ctx, c)
	})
	t.Logf("%d ranks: %v", n, time.Since(start).Round(time.Millisecond))
}
