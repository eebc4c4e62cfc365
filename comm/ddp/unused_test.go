package ddp

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// Each rank leaves out other parameters in each step: rank r announces parameter i if r, i and
// the step fit. No rank ever announces the last.
func announces(rank, step, i int) bool { return i < 3 && (rank+step+i)%3 == 0 }

func TestParametersThatBackwardLeavesOutCountAsZero(t *testing.T) {
	for _, opts := range []Options{{FindUnused: true}, {FindUnused: true, FirstBucketBytes: 4, BucketBytes: 4},
		{FindUnused: true, NoOverlap: true}} {
		for _, size := range []int{1, 2, 4} {
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				params := testParams(0, 4, 3, 2, 5)
				d, err := New(ctx, c, params, opts)
				if err != nil {
					return err
				}
				for step := range 4 {
					d.ZeroGrad()
					for i, p := range slices.Backward(params) {
						if announces(c.Rank(), step, i) {
							p.Grad[1] = gradient(c.Rank(), step, i, 1)
							d.Ready(i)
						}
					}
					if err := d.Finish(ctx); err != nil {
						return err
					}
					if err := checkUsed(d, params, size, step); err != nil {
						return err
					}
				}
				return d.Close(ctx)
			})
		}
	}
}

func checkUsed(d *DDP, params []*Param, size, step int) error {
	for i, p := range params {
		var sum float32
		used := false
		for rank := range size {
			if announces(rank, step, i) {
				sum += gradient(rank, step, i, 1)
				used = true
			}
		}
		if got, want := p.Grad[1], sum/float32(size); got != want || d.Used(i) != used {
			return fmt.Errorf("step %d: %s is %v, used %v; want %v, %v", step, p.Name, got, d.Used(i), want, used)
		}
	}
	return nil
}

// A rank may make fewer passes than Accumulate: its sum counts.
func TestSkipEndsTheStepOfAParameter(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 1, 1)
		d, err := New(ctx, c, params, Options{Accumulate: 3})
		if err != nil {
			return err
		}
		passes := 3 - c.Rank()
		for range 2 {
			d.ZeroGrad()
			for range passes {
				for i := range slices.Backward(params) {
					params[i].Grad[0] += float32(1 + c.Rank())
					d.Ready(i)
				}
			}
			d.SkipRest() // on rank 0 there is none
			if err := d.Finish(ctx); err != nil {
				return err
			}
			for _, p := range params {
				if want := float32(3*1+2*2) / 2; p.Grad[0] != want {
					return fmt.Errorf("%s is %v, want %v", p.Name, p.Grad[0], want)
				}
			}
			if !d.Used(0) {
				return fmt.Errorf("without FindUnused a parameter is not used")
			}
		}
		d.Skip(1)
		d.Skip(1)
		if err := wantError(d.Finish(ctx), "more than 3 times", `"p1"`); err != nil {
			return err
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		return d.Close(ctx)
	})
}
