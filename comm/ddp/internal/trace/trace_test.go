package trace

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
)

func TestClocksOfRanksAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
			off := time.Duration(c.Rank()*c.Rank()) * time.Hour
			got, err := clockShift(ctx, c, func() time.Duration { return time.Since(begin) + off })
			if err == nil && got != -off {
				err = fmt.Errorf("a clock that is %v ahead is shifted by %v", off, got)
			}
			return err
		})
	})
}
