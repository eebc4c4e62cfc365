package compress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

const samples, features, outputs = 64, 30, 20

// leastSquares is a linear model with a bias, and samples of one rank.
type leastSquares struct {
	x, y         []float32 // rows of features, rows of outputs
	weight, bias *ddp.Param
}

// newLeastSquares makes samples of one linear function, with noise, that differ from rank to rank.
func newLeastSquares(rank int) *leastSquares {
	shared, own := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, uint64(rank)))
	normal := func(r *rand.Rand, n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	l := &leastSquares{x: normal(own, samples*features), y: normal(own, samples*outputs)}
	truth := &leastSquares{x: l.x, weight: &ddp.Param{Data: normal(shared, outputs*features)},
		bias: &ddp.Param{Data: normal(shared, outputs)}}
	for s := range samples {
		for o := range outputs {
			l.y[s*outputs+o] = 0.1*l.y[s*outputs+o] + truth.predict(s, o)
		}
	}
	l.weight = &ddp.Param{Name: "weight", Data: make([]float32, outputs*features), Shape: []int{outputs, features}}
	l.bias = &ddp.Param{Name: "bias", Data: make([]float32, outputs)}
	return l
}

func (l *leastSquares) sample(s int) []float32 { return l.x[s*features:][:features] }

func (l *leastSquares) predict(s, output int) float32 {
	return float32(dot64(l.weight.Data[output*features:][:features], l.sample(s))) + l.bias.Data[output]
}

// loss returns the mean of the squares, and adds its gradients to the gradients of the parameters.
func (l *leastSquares) loss() float64 {
	var sum float64
	for s := range samples {
		for o := range outputs {
			e := l.predict(s, o) - l.y[s*outputs+o]
			sum += float64(e) * float64(e)
			g := 2 * e / samples
			addScaled(l.weight.Grad[o*features:][:features], l.sample(s), g)
			l.bias.Grad[o] += g
		}
	}
	return sum / samples
}

// train returns the average loss over ranks after some steps.
func (l *leastSquares) train(ctx context.Context, c *comm.Comm, h ddp.Hook, steps int) (float64, error) {
	d, err := ddp.New(ctx, c, []*ddp.Param{l.weight, l.bias}, ddp.Options{Hook: h, FirstBucketBytes: 4})
	if err != nil {
		return 0, err
	}
	for range steps {
		d.ZeroGrad()
		l.loss()
		for i := range 2 {
			d.Ready(i)
		}
		if err := d.Finish(ctx); err != nil {
			return 0, err
		}
		for _, p := range []*ddp.Param{l.weight, l.bias} {
			addScaled(p.Data, p.Grad, -0.05)
		}
	}
	loss := []float64{l.loss()}
	err = comm.Allreduce(ctx, c, loss, loss, comm.Avg)
	return loss[0], errors.Join(err, d.CheckReplicas(ctx), d.Close(ctx))
}

func TestTrainingReachesTheLossOfPlainAverages(t *testing.T) {
	const ranks, steps = 2, 150
	for name, newHook := range hooks(t) {
		t.Run(name, func(t *testing.T) {
			commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				plain, err := newLeastSquares(c.Rank()).train(ctx, c, nil, steps)
				if err != nil {
					return err
				}
				got, err := newLeastSquares(c.Rank()).train(ctx, c, newHook(), steps)
				if err != nil {
					return err
				}
				t.Logf("%g, plain %g", got, plain)
				if !(got <= 1.1*plain) || plain > 0.3 { // noise makes 0.2
					return fmt.Errorf("the loss is %g, with plain averages %g: want at most a tenth more", got, plain)
				}
				return nil
			})
		})
	}
}

// The first step shows that backward goes from the first parameter to the last, and that makes
// other buckets. The unsent part of that step is sent later.
func TestWhatIsRememberedOutlivesBuckets(t *testing.T) {
	const ranks, steps = 2, 4
	shapes := [][]int{{40, 30}, nil, {20, 50}}
	for _, name := range []string{"powersgd", "topk"} {
		t.Run(name, func(t *testing.T) {
			newHook := hooks(t)[name]
			commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				h, b := &noting{Hook: newHook(), buckets: map[*ddp.Bucket]bool{}}, newBucket(shapes...)
				var params []*ddp.Param
				for _, p := range b.Params {
					params = append(params, &ddp.Param{Name: p.Name, Data: p.Grad, Shape: p.Shape})
				}
				d, err := ddp.New(ctx, c, params, ddp.Options{Hook: h, FirstBucketBytes: 4 * 1201})
				if err != nil {
					return err
				}
				n := len(b.Grads)
				sent, want, x := make([]float64, n), make([]float64, n), make([]float32, n)
				for step := range steps {
					random(x, c.Rank(), step)
					at := x
					for i, p := range params {
						at = at[copy(p.Grad, at):]
						d.Ready(i)
					}
					if err := d.Finish(ctx); err != nil {
						return err
					}
					avg, _ := averages(n, ranks, step)
					at2 := 0
					for _, p := range params {
						for _, v := range p.Grad {
							sent[at2] += float64(v)
							want[at2] += avg[at2]
							at2++
						}
					}
				}
				if len(h.buckets) != 4 {
					return fmt.Errorf("%d buckets in all: want two, and two others", len(h.buckets))
				}
				return errors.Join(wantSum(ctx, c, sent, remembered(h.Hook, b), want), d.Close(ctx))
			})
		})
	}
}

// noting is a Hook that notes the buckets it has seen.
type noting struct {
	ddp.Hook
	buckets map[*ddp.Bucket]bool
}

func (h *noting) Average(ctx context.Context, c *comm.Comm, b *ddp.Bucket) error {
	h.buckets[b] = true
	return h.Hook.Average(ctx, c, b)
}
