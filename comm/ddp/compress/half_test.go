package compress

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

// Each of the quotients is rounded, and at most each addition.
func TestHalvesAreAveragesWithinTheirRounding(t *testing.T) {
	for _, f := range []struct {
		hook    func() ddp.Hook
		unit    float64 // relative error of a rounding
		smaller float64 // error of a rounding to a number that is not normal
	}{{FP16, 0x1p-11, 0x1p-25}, {BF16, 0x1p-8, 0x1p-134}} {
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			t.Run(fmt.Sprintf("%v/%d", f.hook(), ranks), func(t *testing.T) {
				commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
					h, b := f.hook(), newBucket([]int{5000})
					for b.Step = range 2 {
						random(b.Grads, c.Rank(), b.Step)
						if err := h.Average(ctx, c, b); err != nil {
							return err
						}
						want, magnitudes := averages(len(b.Grads), ranks, b.Step)
						for i, got := range b.Grads {
							most := float64(ranks) * (magnitudes[i]*f.unit*1.01 + f.smaller)
							if err := math.Abs(float64(got) - want[i]); !(err <= most) {
								return fmt.Errorf("number %d is %v, want %v within %v", i, got, want[i], most)
							}
						}
					}
					return nil
				})
			})
		}
	}
}

func TestHalvesOverflowOnlyWhereTheAverageDoes(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tc := range []struct {
		hook       func() ddp.Hook
		grad, want float32 // of every rank
	}{
		{FP16, 65504, 65504}, {FP16, -65504, -65504}, {FP16, 70000, inf}, {FP16, inf, inf}, {FP16, nan, nan},
		{FP16, 0x1p-20, 0x1p-20}, {FP16, 0x1p-30, 0}, {FP16, 1 + 0x1p-10, 1 + 0x1p-10}, {FP16, 1 + 0x1p-12, 1},
		{BF16, 0x1p127, 0x1p127}, {BF16, inf, inf}, {BF16, nan, nan}, {BF16, 0x1p-120, 0x1p-120},
		{BF16, 1 + 0x1p-7, 1 + 0x1p-7}, {BF16, 1 + 0x1p-10, 1},
	} {
		commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
			b := newBucket([]int{1})
			b.Grads[0] = tc.grad
			if err := tc.hook().Average(ctx, c, b); err != nil {
				return err
			}
			if got := b.Grads[0]; got != tc.want && !(got != got && tc.want != tc.want) {
				return fmt.Errorf("%v: the average of %v is %v, want %v", tc.hook(), tc.grad, got, tc.want)
			}
			return nil
		})
	}
}
