package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// momentumStep is a step of an optimiser with a memory. All numbers are whole, or halves and
// quarters of them, so that sums are exact in any order.
func momentumStep(data, grad, momentum []float32) {
	for i, g := range grad {
		momentum[i] = momentum[i]/2 + g
		data[i] -= momentum[i]
	}
}

// sharded trains with Options.Shard, or, as the reference, without. It returns the parameters and
// the optimiser's memory of all of them.
func sharded(ctx context.Context, c *comm.Comm, opts Options, clip float64) (params, memory []*Param, err error) {
	params, memory = testParams(c.Rank(), 3, 0, 1000, 7, 5000, 1), testParams(0, 3, 0, 1000, 7, 5000, 1)
	d, err := New(ctx, c, params, opts)
	if err != nil {
		return nil, nil, err
	}
	var own []comm.Buffer
	total := 0
	for _, s := range d.Shards() {
		own = append(own, comm.Of(make([]float32, s.End-s.Begin)))
		total += s.End - s.Begin
	}
	if fair := 6011/c.Size() + len(d.buckets); opts.Shard && total > fair {
		return nil, nil, fmt.Errorf("this rank's optimiser steps %d numbers, want at most %d", total, fair)
	}
	for s := range 3 {
		if err := step(ctx, d, params, c.Rank(), s); err != nil {
			return nil, nil, err
		}
		if _, err := d.ClipGradNorm(ctx, clip); err != nil {
			return nil, nil, err
		}
		for k, s := range d.Shards() {
			momentumStep(comm.Slice[float32](s.Data), comm.Slice[float32](s.Grad), comm.Slice[float32](own[k]))
		}
		if err := d.GatherParams(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := d.CheckReplicas(ctx); err != nil {
		return nil, nil, err
	}
	var all []comm.Buffer
	for _, m := range memory {
		clear(m.Data)
		all = append(all, comm.Of(m.Data))
	}
	return params, memory, errors.Join(d.GatherShards(ctx, own, all), d.Close(ctx))
}

// Each rank keeps the momentum of its part alone, and all end as without.
func TestShardsMakeTheStepsOfTheWhole(t *testing.T) {
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000},
		{FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}} {
		for _, size := range []int{1, 2, 4} { // powers of two, whose averages are exact
			for _, clip := range []float64{1e9, 16} { // the norm is more than 16
				commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
					want, wantMemory, err := sharded(ctx, c, opts, clip)
					if err != nil {
						return err
					}
					opts := opts
					opts.Shard = true
					got, gotMemory, err := sharded(ctx, c, opts, clip)
					if err != nil {
						return err
					}
					for i := range want {
						if !slices.Equal(got[i].Data, want[i].Data) ||
							!slices.Equal(gotMemory[i].Data, wantMemory[i].Data) {
							return fmt.Errorf("%d ranks, clip %v: %s is not what it is without shards", size, clip,
								want[i].Name)
						}
					}
					return nil
				})
			}
		}
	}
}

// Every number of every parameter with no rows belongs to one rank.
func TestShardsOfAllRanksAreTheModel(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
			params := mixed(0)
			params = append(params, &Tensor{Name: "table", Data: comm.Of(make([]float32, 6)), Row: 2})
			d, err := NewTensors(ctx, c, params, Options{Shard: true, FirstBucketBytes: 100, BucketBytes: 1000})
			if err != nil {
				return err
			}
			for i, p := range params {
				owners := make([]int32, p.Data.Len())
				for _, s := range d.Shards() {
					for j := s.Begin; s.Param == i && j < s.End; j++ {
						owners[j]++
					}
				}
				if err := comm.Allreduce(ctx, c, owners, owners, comm.Sum); err != nil {
					return err
				}
				want := int32(1)
				if p.Row > 0 {
					want = 0
				}
				if slices.ContainsFunc(owners, func(n int32) bool { return n != want }) {
					return fmt.Errorf("numbers of %s have %v owners", p.Name, owners)
				}
			}
			return d.Close(ctx)
		})
	}
}

// A table of rows is clipped with the shards: its rows count once, although all ranks have them.
func TestRowsCountOnceInTheNormOfShards(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 10, 2)
		params[0].Row = 2
		d, err := New(ctx, c, params, Options{Shard: true})
		if err != nil {
			return err
		}
		params[1].Grad[c.Rank()] = 8 // the average is 4, 4
		d.Ready(1)
		d.ReadyRows(0, []int32{3}, []float32{2, 0})
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if norm, err := d.ClipGradNorm(ctx, 3); err != nil || norm != 6 {
			return fmt.Errorf("norm is %v (%v), want 6", norm, err)
		}
		if _, values := d.Rows(0); values[0] != 1 {
			return fmt.Errorf("row is %v, want 1, 0", values)
		}
		return d.Close(ctx)
	})
}

func TestWrongBuffersForShardsAreRefused(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 3), Options{Shard: true})
		if err != nil {
			return err
		}
		three, two := comm.Of(make([]float32, 3)), comm.Of(make([]float32, 2))
		return errors.Join(
			wantError(d.GatherShards(ctx, nil, nil),
				"GatherShards of 0 and 0 buffers: want one for each of the 1 shards and 1 parameters"),
			wantError(d.GatherShards(ctx, []comm.Buffer{two}, []comm.Buffer{three}),
				`2 float32 of 3 float32 for numbers 0 to 2 of "p0"`),
			wantError(d.GatherShards(ctx, []comm.Buffer{three}, []comm.Buffer{comm.Of(make([]int32, 3))}),
				`of 3 int32`),
			d.GatherShards(ctx, []comm.Buffer{three}, []comm.Buffer{three}), d.Close(ctx))
	})
}
