package commtest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
)

// average is the function under test: part of a program of yours.
func average(ctx context.Context, c *comm.Comm, x float64) (float64, error) {
	v := []float64{x}
	err := comm.Allreduce(ctx, c, v, v, comm.Avg)
	return v[0], err
}

func ExampleRun() {
	var TestAverage = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // a deadlock fails at once
			commtest.Run(t, 5, func(ctx context.Context, c *comm.Comm) error {
				got, err := average(ctx, c, float64(c.Rank()))
				if err == nil && got != 2 {
					err = fmt.Errorf("average: got %v, want 2", got)
				}
				return err
			})
		})
	}
	_ = TestAverage
}
