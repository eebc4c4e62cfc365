package ddp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// testParams returns parameters of these lengths whose values say whose they are.
func testParams(rank int, lengths ...int) []*Param {
	var ps []*Param
	for i, n := range lengths {
		p := &Param{Name: fmt.Sprintf("p%d", i), Data: make([]float32, n)}
		for j := range p.Data {
			p.Data[j] = float32(1000*rank + 10*i + j%7)
		}
		ps = append(ps, p)
	}
	return ps
}

// gradient is the number that rank adds to number j of parameter i in a step: small whole numbers,
// so that every sum is exact.
func gradient(rank, step, i, j int) float32 {
	return float32((rank+1)*(i+1) + j%5 + step)
}

// average is the mean of gradient over ranks.
func average(size, step, i, j int) float32 {
	var sum float32
	for rank := range size {
		sum += gradient(rank, step, i, j)
	}
	return sum / float32(size)
}

func TestGradientsBecomeTheAverageWhateverTheOrderAndBuckets(t *testing.T) {
	lengths := []int{3, 0, 1000, 7, 5000, 1}
	orders := map[string]func(rank, step int) []int{
		"last to first": func(int, int) []int { return []int{5, 4, 3, 2, 1, 0} },
		"first to last": func(int, int) []int { return []int{0, 1, 2, 3, 4, 5} },
		"each its own": func(rank, step int) []int {
			return rand.New(rand.NewPCG(uint64(rank), uint64(step))).Perm(len(lengths))
		},
	}
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000},
		{FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}} {
		for name, order := range orders {
			for _, size := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s/%d/%+v", name, size, opts), func(t *testing.T) {
					commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
						return threeSteps(ctx, c, testParams(c.Rank(), lengths...), opts, order)
					})
				})
			}
		}
	}
}

func threeSteps(ctx context.Context, c *comm.Comm, params []*Param, opts Options,
	order func(rank, step int) []int) error {
	d, err := New(ctx, c, params, opts)
	if err != nil {
		return err
	}
	for step := range 3 {
		d.ZeroGrad()
		for _, i := range order(c.Rank(), step) {
			for j := range params[i].Grad {
				params[i].Grad[j] += gradient(c.Rank(), step, i, j)
			}
			d.Ready(i)
		}
		if err := comm.Barrier(ctx, c); err != nil { // c is free while gradients travel
			return err
		}
		if err := d.Finish(ctx); err != nil {
			return err
		}
		for i, p := range params {
			for j, got := range p.Grad {
				if want := average(c.Size(), step, i, j); got != want {
					return fmt.Errorf("step %d: %s[%d] is %v, want %v", step, p.Name, j, got, want)
				}
			}
		}
	}
	if got := d.Stats(); got.Steps != 3 || got.Bytes != 3*4*6011 || got.Exposed <= 0 {
		return fmt.Errorf("stats are %+v after 3 steps of 6011 numbers", got)
	}
	return d.Close(ctx)
}

func TestBucketsStartInTheirOrderAsSoonAsTheyAreComplete(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		want []int // buckets started after Ready(0), Ready(2), Ready(1)
	}{
		{Options{FirstBucketBytes: 4, BucketBytes: 4}, []int{0, 1, 3}},
		{Options{FirstBucketBytes: 4, BucketBytes: 80}, []int{0, 1, 2}},
		{Options{}, []int{0, 0, 1}},
		{Options{NoOverlap: true}, []int{0, 0, 0}},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			d, err := New(ctx, c, testParams(0, 4, 4, 4), tc.opts)
			if err != nil {
				return err
			}
			var got []int
			for _, i := range []int{0, 2, 1} {
				d.Ready(i)
				got = append(got, d.started)
			}
			if !slices.Equal(got, tc.want) {
				return fmt.Errorf("%+v: %v buckets have started, want %v", tc.opts, got, tc.want)
			}
			if err := d.Finish(ctx); err != nil {
				return err
			}
			return d.Close(ctx)
		})
	}
}

func TestPassesAddUpAndOnlyTheLastCommunicates(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 4, 4)
		d, err := New(ctx, c, params, Options{Accumulate: 3, FirstBucketBytes: 4, BucketBytes: 4})
		if err != nil {
			return err
		}
		for range 2 {
			d.ZeroGrad()
			for pass := range 3 {
				for i := range params {
					params[i].Grad[0] += gradient(c.Rank(), pass, i, 0)
					d.Ready(i)
				}
				if started := d.started > 0; started != (pass == 2) {
					return fmt.Errorf("after pass %d %d buckets have started", pass, d.started)
				}
			}
			if err := d.Finish(ctx); err != nil {
				return err
			}
			for i := range params {
				want := average(2, 0, i, 0) + average(2, 1, i, 0) + average(2, 2, i, 0)
				if got := params[i].Grad[0]; got != want {
					return fmt.Errorf("p%d is %v, want %v", i, got, want)
				}
			}
		}
		return d.Close(ctx)
	})
}

func TestNewGivesEveryRankTheParametersOfRankZero(t *testing.T) {
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 40}} {
		commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(c.Rank(), 5, 0, 100, 1)
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			for i, want := range testParams(0, 5, 0, 100, 1) {
				if !slices.Equal(params[i].Data, want.Data) {
					return fmt.Errorf("%s is %v, want %v", want.Name, params[i].Data, want.Data)
				}
				if slices.ContainsFunc(params[i].Grad, func(g float32) bool { return g != 0 }) {
					return fmt.Errorf("gradient of %s is not zero: %v", want.Name, params[i].Grad)
				}
			}
			if err := d.CheckReplicas(ctx); err != nil {
				return err
			}
			return d.Close(ctx)
		})
	}
}

// wantError returns an error unless err has all these parts.
func wantError(err error, parts ...string) error {
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			return fmt.Errorf("got error %q, want one with %q", fmt.Sprint(err), part)
		}
	}
	return nil
}

func TestDifferentModelsAreRefusedOnEveryRank(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(ps []*Param, o *Options) []*Param
		want   []string
	}{
		{"length", func(ps []*Param, _ *Options) []*Param { ps[1].Data = ps[1].Data[:6]; return ps },
			[]string{"ranks 2, 3", `rank 0 has parameter 1 "p1" of 7 float32, rank 2 has parameter 1 "p1" of 6 float32`}},
		{"name", func(ps []*Param, _ *Options) []*Param { ps[0].Name = "q"; return ps },
			[]string{"ranks 2, 3", `rank 0 has parameter 0 "p0" of 3 float32, rank 2 has parameter 0 "q" of 3 float32`}},
		{"fewer", func(ps []*Param, _ *Options) []*Param { return ps[:2] },
			[]string{"ranks 2, 3", `rank 0 has parameter 2 "p2" of 9 float32, rank 2 has only 2 parameters`}},
		{"none", func([]*Param, *Options) []*Param { return nil },
			[]string{"ranks 2, 3", "only 0 parameters"}},
		{"options", func(ps []*Param, o *Options) []*Param { o.Accumulate = 2; return ps },
			[]string{"1 backward passes", "2 backward passes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
				params, opts := testParams(0, 3, 7, 9), Options{}
				if c.Rank() >= 2 {
					params = tc.change(params, &opts)
				}
				_, err := New(ctx, c, params, opts)
				return wantError(err, tc.want...)
			})
		})
	}
}

func TestNegativeOptionsAreRefused(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		_, err := New(ctx, c, nil, Options{Accumulate: -1})
		return wantError(err, "Accumulate is -1: want no negative number")
	})
}

func TestMistakesOfBackwardAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ready []int
		want  []string
	}{
		{"twice", []int{2, 1, 0, 1}, []string{"more than 1 times", `"p1"`}},
		{"missing", []int{2}, []string{`no gradient for "p0", "p1"`}},
		{"none", nil, []string{`"p0", "p1", "p2"`}},
		{"unknown", []int{3}, []string{"Ready(3): want 0 to 2"}},
		{"negative", []int{-1}, []string{"Ready(-1)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
				d, err := New(ctx, c, testParams(0, 1, 2, 3), Options{FirstBucketBytes: 4, BucketBytes: 4})
				if err != nil {
					return err
				}
				for _, i := range tc.ready {
					d.Ready(i)
				}
				for range 2 { // the error stays
					if err := wantError(d.Finish(ctx), tc.want...); err != nil {
						return err
					}
				}
				if err := comm.Barrier(ctx, c); err != nil { // or the other would miss this one first
					return err
				}
				return d.Close(ctx)
			})
		})
	}
}

func TestReplicasThatDifferInOneBitAreFound(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 4, 4, 4)
		d, err := New(ctx, c, params, Options{})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			params[2].Data[3] = -params[2].Data[3]
			params[1].Data[0]++
		}
		if err := wantError(d.CheckReplicas(ctx), "rank 1", `first "p1"`); err != nil {
			return err
		}
		return d.Close(ctx)
	})
}

func TestEndedContextEndsFinish(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 100), Options{})
		if err != nil {
			return err
		}
		if c.Rank() == 0 { // the other never takes part
			d.Ready(0)
			short, cancel := context.WithCancel(ctx)
			cancel()
			if err := wantError(d.Finish(short), "ddp: bucket 0", context.Canceled.Error()); err != nil {
				return err
			}
		}
		if err := comm.Barrier(ctx, c); err != nil { // only the DDP's own communicator is broken
			return err
		}
		// Rank 1 may find that it never made the call that rank 0 gave up.
		if err := d.Close(ctx); !errors.Is(err, comm.ErrMismatch) {
			return err
		}
		return nil
	})
}

// bucketParams returns the parameters of each bucket.
func bucketParams(d *DDP) [][]int {
	var all [][]int
	for _, b := range d.buckets {
		all = append(all, b.params)
	}
	return all
}

// Each rank has an order of its own. After the first step rank 0's makes the buckets, once: the
// second step has another, and changes nothing.
func TestFirstStepsOrderMakesTheBuckets(t *testing.T) {
	orders := [][]int{{2, 0, 3, 1}, {0, 1, 2, 3}, {3, 2, 1, 0}}
	opts := Options{FirstBucketBytes: 16, BucketBytes: 32}
	for _, size := range []int{1, 3} {
		commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, 4, 4, 4, 4)
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			before := fmt.Sprint(bucketParams(d))
			for s := range 3 {
				d.ZeroGrad()
				for _, i := range orders[(c.Rank()+s)%3] {
					params[i].Grad[0] = gradient(c.Rank(), s, i, 0)
					d.Ready(i)
				}
				if err := d.Finish(ctx); err != nil {
					return err
				}
				for i, p := range params {
					if want := average(size, s, i, 0); p.Grad[0] != want {
						return fmt.Errorf("step %d: %s is %v, want %v", s, p.Name, p.Grad[0], want)
					}
				}
				if got := fmt.Sprint(bucketParams(d)); before != "[[3] [2 1] [0]]" || got != "[[2] [0 3] [1]]" {
					return fmt.Errorf("buckets were %v, are %v", before, got)
				}
			}
			return d.Close(ctx)
		})
	}
}
