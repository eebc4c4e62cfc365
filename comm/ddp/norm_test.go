package ddp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// step adds gradient to every parameter and averages.
func step(ctx context.Context, d *DDP, params []*Param, rank, step int) error {
	d.ZeroGrad()
	for i, p := range slices.Backward(params) {
		for j := range p.Grad {
			p.Grad[j] += gradient(rank, step, i, j)
		}
		d.Ready(i)
	}
	return d.Finish(ctx)
}

func TestGradientsAreClippedToTheirCommonNorm(t *testing.T) {
	lengths := []int{3, 1001, 7}
	var squares float64
	for i, n := range lengths {
		for j := range n {
			squares += float64(average(2, 0, i, j)) * float64(average(2, 0, i, j))
		}
	}
	norm := math.Sqrt(squares)
	for _, limit := range []float64{1, norm * 2, math.Inf(1)} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, lengths...)
			d, err := New(ctx, c, params, Options{FirstBucketBytes: 4, BucketBytes: 4})
			if err != nil {
				return err
			}
			if err := step(ctx, d, params, c.Rank(), 0); err != nil {
				return err
			}
			got, err := d.ClipGradNorm(ctx, limit)
			if err != nil || math.Abs(got-norm) > 1e-12*norm {
				return fmt.Errorf("norm is %v (%v), want %v", got, err, norm)
			}
			scale := min(1, limit/norm)
			for i, p := range params {
				for j, g := range p.Grad {
					if want := float64(average(2, 0, i, j)) * scale; math.Abs(float64(g)-want) > 1e-6*want {
						return fmt.Errorf("limit %v: %s[%d] is %v, want %v", limit, p.Name, j, g, want)
					}
				}
			}
			return d.Close(ctx)
		})
	}
}

func TestGradientsOfTwoTypesAreClippedTogether(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := []*Tensor{{Name: "a", Data: comm.Of(make([]float32, 2))},
			{Name: "b", Data: comm.Of(make([]float64, 5))}}
		d, err := NewTensors(ctx, c, params, Options{})
		if err != nil {
			return err
		}
		comm.Slice[float32](params[0].Grad)[1], comm.Slice[float64](params[1].Grad)[4] = 3, 4
		d.Ready(1)
		d.Ready(0)
		if err := d.Finish(ctx); err != nil {
			return err
		}
		norm, err := d.ClipGradNorm(ctx, 2.5)
		if a, b := comm.Slice[float32](params[0].Grad)[1], comm.Slice[float64](params[1].Grad)[4]; err != nil ||
			norm != 5 || a != 1.5 || b != 2 {
			return fmt.Errorf("norm is %v (%v), gradients %v and %v; want 5, 1.5 and 2", norm, err, a, b)
		}
		return d.Close(ctx)
	})
}

// A norm is a number also where the squares of the gradients are too large for a float64, or too
// small.
func TestNormsWhoseSquareIsNoFloat64(t *testing.T) {
	for _, grads := range [][]float64{{3e160, 0, 0, 4e160, 0}, {0, 3e-170, 0, 0, -4e-170}, {3e307, 4e307},
		{3 << 3 * 5e-324, 4 << 3 * 5e-324}, {0, 0}} {
		for _, shard := range []bool{false, true} {
			commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
				x := &Tensor{Name: "x", Data: comm.Of(make([]float64, len(grads)))}
				d, err := NewTensors(ctx, c, []*Tensor{x}, Options{Shard: shard})
				if err != nil {
					return err
				}
				copy(comm.Slice[float64](x.Grad), grads)
				d.Ready(0)
				if err := d.Finish(ctx); err != nil {
					return err
				}
				most := slices.MaxFunc(grads, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
				want := math.Abs(most) / 4 * 5
				limit := math.Inf(1)
				if want > 1 {
					limit = 5
				}
				got, err := d.ClipGradNorm(ctx, limit)
				if err != nil || math.Abs(got-want) > 1e-15*want {
					return fmt.Errorf("%v, shards: %v: norm is %v (%v), want %v", grads, shard, got, err, want)
				}
				for _, s := range d.Shards() {
					for i, g := range comm.Slice[float64](s.Grad) {
						if x := grads[s.Begin+i] * min(1, limit/want); math.Abs(g-x) > 1e-15*math.Abs(x) {
							return fmt.Errorf("%v, shards: %v: clipped to %v, want %v", grads, shard, g, x)
						}
					}
				}
				return d.Close(ctx)
			})
		}
	}
}

func TestNormsThatMakeNoSenseAreErrors(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 4)
		d, err := New(ctx, c, params, Options{})
		if err != nil {
			return err
		}
		for _, limit := range []float64{0, -1, math.NaN()} {
			_, err := d.ClipGradNorm(ctx, limit)
			if err := wantError(err, fmt.Sprintf("ClipGradNorm(%v): want a positive limit", limit)); err != nil {
				return err
			}
		}
		if c.Rank() == 1 {
			params[0].Grad[2] = float32(math.Inf(1))
		}
		d.Ready(0)
		if err := d.Finish(ctx); err != nil {
			return err
		}
		before := slices.Clone(params[0].Grad)
		_, err = d.ClipGradNorm(ctx, 1)
		if err := wantError(err, "norm of the gradients is +Inf"); err != nil {
			return err
		}
		if !slices.Equal(params[0].Grad, before) {
			return fmt.Errorf("gradients became %v", params[0].Grad)
		}
		return d.Close(ctx)
	})
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		p := &Tensor{Name: "p", Data: comm.Of(make([]comm.Float16, 2))}
		d, err := NewTensors(ctx, c, []*Tensor{p}, Options{})
		if err != nil {
			return err
		}
		_, err = d.ClipGradNorm(ctx, 1)
		if err := wantError(err, "gradients of float16: want float32 or float64"); err != nil {
			return err
		}
		return d.Close(ctx)
	})
}
