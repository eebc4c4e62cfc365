// Command toy is the first program of PyTorch's tutorial of distributed training: one linear layer
// of 20 inputs and one output learns 2048 made-up samples.
//
//	gompirun -np 4 toy 50 10
//
// trains for 50 epochs and saves to toy.snapshot after every 10. The same command with more epochs
// continues from there. Each rank takes 32 samples of every batch.
//
// The tutorial's loss is a cross entropy of one class, whose gradient is zero, and each of its
// ranks makes up other samples. Here the loss is the squared error, and the seed makes the same
// samples on all ranks.
//
// The loop over batches is in examples/internal/job, train.go.
package main

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"strconv"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/job"
	"gompi/examples/internal/nn"
)

const purpose = `Trains a linear layer on made-up data. Alone, or under gompirun with as many ranks as one likes.
"toy 50 10" trains for 50 epochs and saves to toy.snapshot after every 10.`

const samples, inputs = 2048, 20

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	f := defaults()
	parse := func() error { return f.Parse("toy", purpose, args, stdout, nil) }
	return job.Run("toy", stdout, stderr, parse, func(ctx context.Context, c *comm.Comm, out io.Writer) error {
		_, err := train(ctx, c, &f, out)
		return err
	})
}

func defaults() job.Flags {
	return job.Flags{Epochs: 50, Batch: 32, BatchPer: "rank", Rate: 1e-3, Seed: 1, Resume: "auto"}
}

func train(ctx context.Context, c *comm.Comm, f *job.Flags, out io.Writer) (*job.Result, error) {
	spec := job.Spec{Samples: samples, Meters: []job.Meter{{Name: "squared error", Show: func(v float64) string {
		return strconv.FormatFloat(v, 'f', 6, 64)
	}}}}
	return job.Train(ctx, c, f, newToy(f), spec, out)
}

// A toy is the layer, its optimiser and its data.
type toy struct {
	layer *nn.Linear
	sgd   *nn.SGD
	rate  float64
	x, y  []float32 // all samples
	xs    nn.Matrix // the loaded samples
	ys    []float32
}

// newToy makes up random inputs, and outputs that are a linear function of them with a little
// noise. The final error is noise².
func newToy(f *job.Flags) *toy {
	rng := rand.New(rand.NewPCG(f.Seed, 0x746f79))
	t := &toy{layer: nn.NewLinear("linear", inputs, 1, 0.1, 1, rng), rate: f.Rate}
	t.sgd = nn.NewSGD(t.layer.Params(), 0, 0)
	var truth [inputs]float32
	for i := range truth {
		truth[i] = rng.Float32()
	}
	for range samples {
		y := float32(rng.NormFloat64() * noise)
		for _, w := range truth {
			x := float32(rng.NormFloat64())
			t.x = append(t.x, x)
			y += w * x
		}
		t.y = append(t.y, y)
	}
	return t
}

const noise = 0.1

func (t *toy) Params() []*ddp.Param { return t.layer.Params() }
func (t *toy) Memory() []ddp.Slice  { return t.sgd.Memory() }

func (t *toy) Load(share []int, _ bool) {
	t.xs, t.ys = nn.NewMatrix(len(share), inputs), t.ys[:0]
	for i, at := range share {
		copy(t.xs.Data[i*inputs:][:inputs], t.x[at*inputs:])
		t.ys = append(t.ys, t.y[at])
	}
}

func (t *toy) Learn(d *ddp.DDP, scale float32) []float64 {
	y := t.layer.Forward(t.xs)
	loss := nn.SquaredError(y, t.ys, scale)
	nn.Stack{t.layer}.Backward(y, d.Ready)
	return []float64{loss}
}

func (t *toy) Judge() []float64 { return nil } // nothing is held out

func (t *toy) Update(*ddp.DDP, job.At) { t.sgd.Step(t.rate) }
