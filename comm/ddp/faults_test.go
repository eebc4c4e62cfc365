package ddp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
)

// describer is a Hook that does nothing but to have a name.
type describer string

func (h describer) String() string                                     { return string(h) }
func (h describer) Average(context.Context, *comm.Comm, *Bucket) error { return nil }

func TestDifferentOptionsAreRefusedOnEveryRank(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(ps []*Param, o *Options)
		want   string
	}{
		"bucket bytes": {func(_ []*Param, o *Options) { o.BucketBytes = 5 }, "buckets of 1048576 and 5 bytes"},
		"unused":       {func(_ []*Param, o *Options) { o.FindUnused = true }, "unused parameters"},
		"hook": {func(_ []*Param, o *Options) { o.Hook = describer("half as many bits") },
			"hook half as many bits"},
		"quantum": {func(_ []*Param, o *Options) { o.Quantum = 0.25 }, "quantum 0.25"},
		"shards":  {func(_ []*Param, o *Options) { o.Shard = true }, "shards"},
		"local":   {func(_ []*Param, o *Options) { o.LocalSteps, o.LocalAfter = 4, 9 }, "local steps 4 after 9"},
		"buffers": {func(_ []*Param, o *Options) { o.Buffers = []Slice{{"mean", comm.Of([]float32{1})}} },
			`buffer "mean" of 1 float32`},
		"rows": {func(ps []*Param, _ *Options) { ps[1].Row = 7 }, `"p1" of 7 float32 in rows of 7`},
		"shape": {func(ps []*Param, _ *Options) { ps[1].Shape = []int{1, 7} },
			`"p1" of 7 float32 with the shape [1 7]`},
	} {
		t.Run(name, func(t *testing.T) {
			commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
				params, opts := testParams(0, 3, 7), Options{}
				if c.Rank() == 2 {
					tc.change(params, &opts)
				}
				_, err := New(ctx, c, params, opts)
				return wantError(err, "model of rank 2 is not rank 0's", tc.want)
			})
		})
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, tc := range map[string]struct {
		opts Options
		p    comm.Buffer
	}{
		"BucketBytes is -1: want no negative": {Options{BucketBytes: -1},
			comm.Of([]float32{1})},
		"Quantum is 0.3: want a power of two": {Options{Quantum: 0.3},
			comm.Of([]float32{1})},
		"Quantum is -0.5: want a power of two": {Options{Quantum: -0.5},
			comm.Of([]float32{1})},
		"Hook and Quantum are set: want one of them": {Options{Quantum: 0.5,
			Hook: describer("")}, comm.Of([]float32{1})},
		"Shard and LocalSteps are set: want one of them": {Options{Shard: true, LocalSteps: 2},
			comm.Of([]float32{1})},
		"Shard and TuneBuckets are set: want one of them": {Options{Shard: true, TuneBuckets: true},
			comm.Of([]float32{1})},
		"LocalAfter is 3 without LocalSteps: want both": {Options{LocalAfter: 3},
			comm.Of([]float32{1})},
		`Hook is set and parameter "p" has numbers of float64: want float32`: {Options{Hook: describer("")},
			comm.Of([]float64{1})},
		`Quantum is set and parameter "p" has numbers of float64`: {Options{Quantum: 0.5}, comm.Of([]float64{1})},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			_, err := NewTensors(ctx, c, []*Tensor{{Name: "p", Data: tc.p}}, tc.opts)
			return wantError(err, want)
		})
	}
}

// One rank dies when others wait for it in Finish. They learn of it, whatever averages.
// The one that died leaves its goroutines, so there is no bubble.
func TestRankThatDiesEndsFinishOfTheOthers(t *testing.T) {
	for name, opts := range map[string]Options{
		"average": {}, "small buckets": {FirstBucketBytes: 4, BucketBytes: 4}, "hook": {Hook: meanHook{}},
		"exact": {Quantum: 0.5}, "shards": {Shard: true}, "unused": {FindUnused: true}, "trace": {Trace: true},
	} {
		errs := commtest.Ranks(t.Context(), 3, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, 40, 30)
			params[0].Row = 4
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			for s := range 3 {
				if c.Rank() == 1 && s == 2 {
					return errors.New("a reason of its own")
				}
				d.ZeroGrad()
				d.Ready(1)
				d.ReadyRows(0, []int32{int32(c.Rank())}, make([]float32, 4))
				if err := d.Finish(ctx); err != nil {
					return errors.Join(err, closing(d.Close(ctx)))
				}
			}
			return errors.New("the third step was done without rank 1")
		})
		for _, rank := range []int{0, 2} {
			if err := wantError(errs[rank], "rank 1", "a reason of its own"); err != nil ||
				!errors.Is(errs[rank], comm.ErrRevoked) {
				t.Errorf("%s: rank %d: %v", name, rank, err)
			}
		}
	}
}

// closing returns the error of a Close, unless the error is the death of a rank.
func closing(err error) error {
	if err == nil || errors.Is(err, comm.ErrRevoked) {
		return nil
	}
	return fmt.Errorf("close: %w", err)
}

// One rank announces one parameter too few, and so starts fewer averages: all ranks get an error.
func TestRankThatStopsHalfwayDoesNotHangTheOthers(t *testing.T) {
	for _, opts := range []Options{
		{FirstBucketBytes: 4, BucketBytes: 4}, // one has begun to average on both
		{},                                    // on rank 0 alone
		{NoOverlap: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				d, err := New(ctx, c, testParams(0, 40, 30), opts)
				if err != nil {
					return err
				}
				d.Ready(1)
				if c.Rank() == 0 {
					d.Ready(0)
				}
				return errors.Join(d.Finish(ctx), closing(d.Close(ctx)))
			})
			if errs[0] == nil || errs[1] == nil || !strings.Contains(errs[1].Error(), `no gradient for "p0"`) {
				t.Errorf("%v: errors are %v and %v", opts, errs[0], errs[1])
			}
		})
	}
}
