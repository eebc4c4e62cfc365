// Command cnn is the classic first network for pictures: two convolutions and two linear layers
// learn to read the digit in a picture of 28 x 28 pixels.
//
//	gompirun -np 4 cnn -data mnist
//
// reads MNIST's four files, compressed or not, from the folder mnist; "cnn -data mnist -gen" only
// writes similar files. Without -data it makes up digits. The defaults follow PyTorch's example for
// ImageNet, a frequent base of scripts for MNIST: -batch 256 is for each node and divided among its
// ranks; momentum is 0.9, weight decay 1e-4; the rate falls to a tenth after every 30 epochs. Its
// 90 epochs are 5 here, and its rate of 0.1 is 0.03, since a network without normalisation may
// diverge at more.
//
// Reading order: newNetwork and Learn below; data.go has the input of rank 0 and its distribution;
// the loop over batches is in examples/internal/job, train.go; layers are in examples/internal/nn.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/job"
	"gompi/examples/internal/nn"
)

const purpose = `Trains a convolutional network to read digits: MNIST's with -data, else made-up ones. Alone, or under
gompirun with as many ranks as one likes.`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	f, d := defaults(), source{samples: 6000}
	parse := func() error {
		if err := f.Parse("cnn", purpose, args, stdout, func(fs *flag.FlagSet) { d.define(fs) }); err != nil {
			return err
		}
		return d.check()
	}
	return job.Run("cnn", stdout, stderr, parse, func(ctx context.Context, c *comm.Comm, out io.Writer) error {
		if d.write {
			return ddp.OnRankZero(ctx, c, func() error { return d.generate(f.Seed, out) })
		}
		_, err := train(ctx, c, &f, d, out)
		return err
	})
}

func defaults() job.Flags {
	return job.Flags{Epochs: 5, Batch: 256, BatchPer: "node", Rate: 0.03, Seed: 1, Resume: "auto", Every: 10}
}

func train(ctx context.Context, c *comm.Comm, f *job.Flags, d source, out io.Writer) (*job.Result, error) {
	learnt, held, err := d.share(ctx, c, f.Seed, out)
	if err != nil {
		return nil, err
	}
	m := newModel(learnt, held, f, nn.WorkersOf(c.Size()))
	percent := func(v float64) string { return fmt.Sprintf("%.2f %%", 100*v) }
	return job.Train(ctx, c, f, m, job.Spec{
		Samples: len(learnt.Labels), Held: len(held.Labels), Checksum: checksum(learnt, held),
		Meters: []job.Meter{
			{Name: "loss", Show: func(v float64) string { return fmt.Sprintf("%.4f", v) }},
			{Name: "top-1", Show: percent, Higher: true},
			{Name: "top-5", Show: percent, Higher: true},
		},
		Best: 1,
	}, out)
}

// A model is the network, its optimiser and its pictures.
type model struct {
	learnt, held *digits
	network      nn.Stack
	sgd          *nn.SGD
	rate         float64

	x      nn.Matrix // the loaded pictures
	labels []byte    // and their labels
}

func newModel(learnt, held *digits, f *job.Flags, workers nn.Workers) *model {
	m := &model{learnt: learnt, held: held, rate: f.Rate}
	m.network = newNetwork(nn.Image{Height: learnt.Height, Width: learnt.Width, Channels: 1}, f.Seed, workers)
	m.sgd = nn.NewSGD(m.network.Params(), 0.9, 1e-4)
	return m
}

// newNetwork returns convolutions with 20 and 50 channels and linear layers with 500 and 10
// outputs. A ReLU comes after the pool: the same numbers as before the pool, for a quarter of the
// work.
func newNetwork(in nn.Image, seed uint64, workers nn.Workers) nn.Stack {
	rng := rand.New(rand.NewPCG(seed, 0x636e6e))
	conv1, at := nn.NewConvolution("conv1", in, 5, 20, workers, rng)
	pool1, at := nn.NewMaxPool(at)
	conv2, at := nn.NewConvolution("conv2", at, 5, 50, workers, rng)
	pool2, at := nn.NewMaxPool(at)
	fc1 := nn.NewLinear("fc1", at.Len(), 500, nn.Cautious(at.Len()), workers, rng)
	fc2 := nn.NewLinear("fc2", 500, 10, nn.Cautious(500), workers, rng)
	return nn.Stack{conv1, pool1, &nn.ReLU{}, conv2, pool2, &nn.ReLU{}, fc1, &nn.ReLU{}, fc2}
}

func (m *model) Params() []*ddp.Param { return m.network.Params() }
func (m *model) Memory() []ddp.Slice  { return m.sgd.Memory() }

// Load converts pixels to numbers, normalized with the mean and the deviation of MNIST.
func (m *model) Load(samples []int, held bool) {
	set := m.learnt
	if held {
		set = m.held
	}
	n := set.Height * set.Width
	m.x, m.labels = nn.NewMatrix(len(samples), n), m.labels[:0]
	for i, at := range samples {
		row := m.x.Data[i*n:][:n]
		for j, v := range set.Pixels[at*n:][:n] {
			row[j] = (float32(v)/255 - 0.1307) / 0.3081
		}
		m.labels = append(m.labels, set.Labels[at])
	}
}

func (m *model) Learn(d *ddp.DDP, scale float32) []float64 {
	logits := m.network.Forward(m.x)
	sums := m.sums(logits, scale)
	m.network.Backward(logits, d.Ready)
	return sums
}

func (m *model) Judge() []float64 { return m.sums(m.network.Forward(m.x), 0) }

// sums returns the meters' sums, and leaves the gradient in logits.
func (m *model) sums(logits nn.Matrix, scale float32) []float64 {
	top1, top5 := nn.Hits(logits, m.labels, 1), nn.Hits(logits, m.labels, 5)
	return []float64{nn.CrossEntropy(logits, m.labels, scale), float64(top1), float64(top5)}
}

// Update makes a step. The rate falls to a tenth after every 30 epochs.
func (m *model) Update(_ *ddp.DDP, at job.At) {
	m.sgd.Step(m.rate * math.Pow(0.1, float64(at.Epoch/30)))
}
