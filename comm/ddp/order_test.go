package ddp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// randomModel returns a model of parameters of several types and sizes, some with rows.
func randomModel(r *rand.Rand) []*Tensor {
	var params []*Tensor
	for i := range 1 + r.IntN(12) {
		p, n := &Tensor{Name: fmt.Sprintf("p%d", i)}, r.IntN(9)
		switch r.IntN(5) {
		case 0:
			p.Data = comm.Of(make([]float64, n))
		case 1:
			p.Data, p.Row = comm.Of(make([]float32, 4*n)), 4
		default:
			p.Data = comm.Of(make([]float32, n))
		}
		params = append(params, p)
	}
	return params
}

// trainOneStep makes a step that announces the parameters in this order.
func trainOneStep(ctx context.Context, d *DDP, order []int) error {
	d.ZeroGrad()
	for _, i := range order {
		if d.params[i].Row > 0 {
			d.ReadyRows(i, nil, nil)
		} else {
			d.Ready(i)
		}
	}
	return d.Finish(ctx)
}

// The next job begins with the last buckets of a job and keeps them, in any order of its backward.
func TestBucketsGoOnInTheirOrder(t *testing.T) {
	changed := 0
	for seed := range uint64(30) {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			r := rand.New(rand.NewPCG(seed, 3))
			params := randomModel(r)
			opts := Options{FirstBucketBytes: 4 * (1 + r.IntN(8)), BucketBytes: 4 * (1 + r.IntN(16))}
			before, err := NewTensors(ctx, c, params, opts)
			if err != nil {
				return err
			}
			first := bucketParams(before)
			if err := trainOneStep(ctx, before, r.Perm(len(params))); err != nil {
				return err
			}
			want := bucketParams(before)
			if c.Rank() == 0 && !reflect.DeepEqual(first, want) {
				changed++
			}
			opts.BucketOrder = before.BucketOrder()
			if err := before.Close(ctx); err != nil {
				return err
			}
			after, err := NewTensors(ctx, c, params, opts)
			if err != nil {
				return err
			}
			for range 2 {
				if got := bucketParams(after); !reflect.DeepEqual(got, want) ||
					!slices.Equal(after.BucketOrder(), opts.BucketOrder) {
					return fmt.Errorf("buckets are %v in the order %v, want %v", got, after.BucketOrder(), want)
				}
				if err := trainOneStep(ctx, after, r.Perm(len(params))); err != nil {
					return err
				}
			}
			return after.Close(ctx)
		})
	}
	if changed < 10 {
		t.Errorf("%d of 30 first steps changed the buckets: want at least 10, or the test shows little", changed)
	}
}

// Until a step has shown the order there is none, and one of another model shows none.
func TestBucketOrderIsUnknownBeforeTheFirstStep(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 4, 4, 4)
		for _, opts := range []Options{{}, {BucketOrder: []int{1, 0}}} {
			opts.FirstBucketBytes, opts.BucketBytes = 16, 32
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			if got := d.BucketOrder(); got != nil {
				return fmt.Errorf("the order is %v before the first step", got)
			}
			if err := trainOneStep(ctx, d, []int{1, 0, 2}); err != nil {
				return err
			}
			if got := d.BucketOrder(); !slices.Equal(got, []int{1, 0, 2}) {
				return fmt.Errorf("the order is %v, want that of the step", got)
			}
			if err := d.Close(ctx); err != nil {
				return err
			}
			if got := d.BucketOrder(); got != nil {
				return fmt.Errorf("the order is %v after Close", got)
			}
		}
		return nil
	})
}

func TestBucketOrdersThatAreNoneAreRefused(t *testing.T) {
	for want, order := range map[string]func(rank int) []int{
		"BucketOrder has parameter 3 at place 1: want each of 0 to 2 once":  func(int) []int { return []int{2, 3, 0} },
		"BucketOrder has parameter -1 at place 0: want each of 0 to 2 once": func(int) []int { return []int{-1, 1, 0} },
		"BucketOrder has parameter 2 at place 2: want each of 0 to 2 once":  func(int) []int { return []int{2, 0, 2} },
		"the model of rank 1 is not rank 0's: rank 0 has buckets of": func(rank int) []int {
			return [][]int{{0, 1, 2}, {0, 2, 1}}[rank]
		},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			_, err := New(ctx, c, testParams(0, 4, 4, 4), Options{BucketOrder: order(c.Rank())})
			return wantError(err, want)
		})
	}
}
