package ddp

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp/sampler"
)

// A run trains a toy in batches of 12 micro-batches of 5 samples.
type run struct {
	opts  Options
	steps int
}

const toySamples, toyBatch, toyMicro = 400, 60, 5

// trainToy returns rank 0's parameters and the loss of each step.
func trainToy(t *testing.T, size int, r run) (numbers []float32, curve []float64) {
	t.Helper()
	commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
		model, losses, err := r.rank(ctx, c)
		if err == nil && c.Rank() == 0 {
			numbers, curve = model.numbers(), losses
		}
		return err
	})
	return numbers, curve
}

func (r run) rank(ctx context.Context, c *comm.Comm) (*toy, []float64, error) {
	s, err := sampler.New(toySamples, toyBatch, 7, sampler.Short)
	if err != nil {
		return nil, nil, err
	}
	if s, err = s.Micro(toyMicro); err != nil {
		return nil, nil, err
	}
	model := newToy(3)
	r.opts.Accumulate = s.Passes(c.Size())
	d, err := New(ctx, c, model.params, r.opts)
	if err != nil {
		return nil, nil, err
	}
	var curve []float64
	own := model.memory(d.Shards())
	at := sampler.Position{}
	for range r.steps {
		share, total, next := s.Next(nil, at, c.Rank(), c.Size())
		scale := 1 / float32(total)
		if r.opts.Quantum == 0 {
			scale *= float32(c.Size())
		}
		d.ZeroGrad()
		var losses float64
		for pass := range slices.Chunk(share, toyMicro) {
			losses += model.backward(pass, scale, d.Ready)
		}
		d.SkipRest()
		if err := d.Finish(ctx); err != nil {
			return nil, nil, err
		}
		model.update(d.Shards(), own)
		if err := d.GatherParams(ctx); err != nil {
			return nil, nil, err
		}
		loss, err := Mean(ctx, c, losses, len(share))
		if err != nil {
			return nil, nil, err
		}
		curve, at = append(curve, loss), next
	}
	if err := d.CheckReplicas(ctx); err != nil {
		return nil, nil, err
	}
	return model, curve, d.Close(ctx)
}

// With exact sums the parameters are the same bits on any number of ranks; with averages they are
// not, which shows that the test can tell.
func TestExactSumsMakeTheSameStepsOnAnyNumberOfRanks(t *testing.T) {
	for name, opts := range map[string]Options{"one bucket": {},
		"small buckets": {FirstBucketBytes: 40, BucketBytes: 40}} {
		rounded := 0
		plain, curve := trainToy(t, 1, run{opts: opts, steps: 25})
		if !(curve[24] < 0.5*curve[0]) {
			t.Fatalf("nothing was learnt: the loss went from %v to %v", curve[0], curve[24])
		}
		opts.Quantum = 0x1p-44
		want, wantCurve := trainToy(t, 1, run{opts: opts, steps: 25})
		for _, size := range []int{2, 3, 4, 5} {
			got, gotCurve := trainToy(t, size, run{opts: opts, steps: 25})
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d ranks end with other parameters than one", name, size)
			}
			opts := opts
			opts.Quantum = 0
			averaged, _ := trainToy(t, size, run{opts: opts, steps: 25})
			if !slices.Equal(averaged, plain) {
				rounded++
			}
			for i := range gotCurve {
				if math.Abs(gotCurve[i]-wantCurve[i]) > 1e-12*wantCurve[i] ||
					math.Abs(gotCurve[i]-curve[i]) > 1e-4*curve[i] {
					t.Errorf("%s: %d ranks: loss at step %d is %v, want %v, and about %v", name, size, i, gotCurve[i],
						wantCurve[i], curve[i])
				}
			}
		}
		if rounded == 0 {
			t.Errorf("%s: averages are exact, too: the test shows nothing", name)
		}
	}
}

// A gradient that does not fit, on any rank, is an error on all ranks.
func TestGradientsThatDoNotFitTheQuantumAreErrors(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1)), 1e30} {
		for _, row := range []int{0, 2} {
			commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
				params := testParams(0, 4)
				params[0].Row = row
				d, err := New(ctx, c, params, Options{Quantum: 0x1p-44})
				if err != nil {
					return err
				}
				grad := []float32{0, 0, 0, 0}
				if c.Rank() == 1 {
					grad[2] = bad
				}
				if row > 0 {
					d.ReadyRows(0, []int32{0, 1}, grad)
				} else {
					copy(params[0].Grad, grad)
					d.Ready(0)
				}
				err = d.Finish(ctx)
				return errors.Join(wantError(err, `"p0"`, "are not finite, or larger than ",
					"want a Quantum of more than 5.68"), d.Close(ctx))
			})
		}
	}
}
