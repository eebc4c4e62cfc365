// Package cudann is package bytelm on a CUDA device: the same network and optimiser, step by step,
// in kernels of its own and products by cuBLAS, or by a plain kernel without cuBLAS. All work is on
// one stream; the host waits only for the loss.
package cudann

import (
	"errors"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/cudaops"
	"gompi/examples/internal/nn"
	"gompi/examples/train/internal/bytelm"
)

// A Network is bytelm's Network with its parameters and activations in the memory of a device. One
// goroutine at a time uses a Network.
type Network struct {
	e        *engine
	products string
	shape    bytelm.Shape
	table    *ddp.Tensor // of the embedding
	x        cudaops.Buffer
	layers   []layer
	contexts *input
	targets  *input
	losses   *output
	logits   cudaops.Buffer // in host memory, for Evaluate
}

// A layer computes y = x W + b, and max(0, y) if relu is set.
type layer struct {
	weight, bias *ddp.Tensor
	in, out      int
	relu         uint64
	x, y         cudaops.Buffer // for all rows; x is the previous layer's y
	dx           cudaops.Buffer
}

// New returns a Network on d with the weights of bytelm.New. Products are by cuBLAS if its library
// exists. Close frees the device's memory.
func New(d *cudaops.Device, shape bytelm.Shape, seed uint64) (*Network, error) {
	e, err := newEngine(d)
	if err != nil {
		return nil, err
	}
	n := &Network{e: e, shape: shape, products: "products by cuBLAS"}
	var failed *cudaops.Error
	if e.blas, err = e.s.NewBLAS(); errors.As(err, &failed) {
		e.note(err)
	} else if err != nil {
		n.products = fmt.Sprintf("products by a plain kernel (%v)", err)
	}
	shape.Rows = 0 // the host's network only lends its weights: no memory for batches
	n.build(bytelm.New(shape, seed).Params())
	if e.err != nil {
		return nil, n.Close()
	}
	return n, nil
}

// build allocates and copies the parameters, and allocates the activations.
func (n *Network) build(params []*ddp.Param) {
	e, s := n.e, n.shape
	n.table = e.tensor(params[0])
	n.x = alloc[float32](e, s.Rows*s.Context*s.Width)
	x, in := n.x, s.Context*s.Width
	for i, out := range append(slices.Clone(s.Hidden), 256) {
		l := layer{weight: e.tensor(params[2*i+1]), bias: e.tensor(params[2*i+2]), in: in, out: out,
			x: x, y: alloc[float32](e, s.Rows*out), dx: alloc[float32](e, s.Rows*in)}
		if i < len(s.Hidden) {
			l.relu = 1
		}
		n.layers = append(n.layers, l)
		x, in = l.y, out
	}
	n.contexts, n.targets, n.losses = newInput(e, s.Rows*s.Context), newInput(e, s.Rows), newOutput(e, s.Rows)
	n.logits = pinned[float32](e, s.Rows*in)
}

// Products describes the matrix products' method.
func (n *Network) Products() string { return n.products }

// Rows returns the largest number of samples for Evaluate and Backward.
func (n *Network) Rows() int { return n.shape.Rows }

// Stream returns the stream of all work.
func (n *Network) Stream() *cudaops.Stream { return n.e.s }

// Params returns the parameters in the order of bytelm's.
func (n *Network) Params() []*ddp.Tensor {
	ps := []*ddp.Tensor{n.table}
	for _, l := range n.layers {
		ps = append(ps, l.weight, l.bias)
	}
	return ps
}

// Evaluate is bytelm's Evaluate. The host compares the logits.
func (n *Network) Evaluate(contexts, targets []byte) (loss float64, right int, err error) {
	n.forward(contexts)
	last := n.layers[len(n.layers)-1]
	here := n.logits.Slice(0, len(targets)*last.out)
	n.e.copy(here, last.y.Slice(0, here.Len()))
	n.crossEntropy(targets, 0)
	if loss, err = n.losses.sum(len(targets)); err != nil { // waits for here, too
		return 0, 0, err
	}
	logits := nn.Matrix{Rows: len(targets), Cols: last.out, Stride: last.out, Data: comm.Slice[float32](here)}
	return loss, nn.Hits(logits, targets, 1), nil
}

// Backward is bytelm's Backward, but calls ready(i) as soon as the work for the gradient of
// parameter i is enqueued.
func (n *Network) Backward(contexts, targets []byte, scale float32, ready func(i int)) (float64, error) {
	rows := len(targets)
	n.forward(contexts)
	n.crossEntropy(targets, scale)
	grad := n.layers[len(n.layers)-1].y // crossEntropy has left the gradient there
	for i, l := range slices.Backward(n.layers) {
		n.e.backward(l, grad, rows)
		ready(2*i + 2) // bias
		ready(2*i + 1) // weight
		grad = n.e.inputGradient(l, grad, rows)
	}
	launch(n.e, "lookup_gradient", 256*n.shape.Width, n.lookup(n.table.Grad, grad, len(contexts)))
	ready(0)
	return n.losses.sum(rows)
}

// forward computes the logits of the contexts, which are the last layer's y.
func (n *Network) forward(contexts []byte) {
	n.contexts.set(contexts)
	launch(n.e, "lookup", len(contexts)*n.shape.Width, n.lookup(n.table.Data, n.x, len(contexts)))
	for _, l := range n.layers {
		n.e.forward(l, len(contexts)/n.shape.Context)
	}
}

func (n *Network) lookup(table, x cudaops.Buffer, bytes int) lookupArgs {
	return lookupArgs{table: address(table), bytes: address(n.contexts.there), x: address(x), n: uint64(bytes),
		width: uint64(n.shape.Width)}
}

// crossEntropy enqueues the losses' copy to the host, and replaces the logits by scale times the
// gradient of the losses' sum.
func (n *Network) crossEntropy(targets []byte, scale float32) {
	n.targets.set(targets)
	last := n.layers[len(n.layers)-1]
	launch(n.e, "cross_entropy", len(targets), lossArgs{
		logits: address(last.y), targets: address(n.targets.there), losses: address(n.losses.there),
		rows: uint64(len(targets)), cols: uint64(last.out), scale: scale,
	})
	n.losses.fetch(len(targets))
}

func (e *engine) forward(l layer, rows int) {
	e.multiply(matrix(l.y, rows, l.out), matrix(l.x, rows, l.in), matrix(l.weight.Data, l.in, l.out), 0)
	launch(e, "activate", rows*l.out, l.args(l.y, l.bias.Data, rows))
}

// backward takes the gradient of the loss by the last y and adds to the gradients of weight and
// bias. backward replaces dy by the gradient before relu.
func (e *engine) backward(l layer, dy cudaops.Buffer, rows int) {
	if l.relu != 0 {
		launch(e, "relu_gradient", rows*l.out,
			reluArgs{y: address(l.y), gradient: address(dy), n: uint64(rows * l.out)})
	}
	launch(e, "bias_gradient", l.out, l.args(dy, l.bias.Grad, rows))
	e.multiply(matrix(l.weight.Grad, l.in, l.out), matrix(l.x, rows, l.in).T(), matrix(dy, rows, l.out), 1)
}

// inputGradient returns the gradient by the last x, given backward's dy.
func (e *engine) inputGradient(l layer, dy cudaops.Buffer, rows int) cudaops.Buffer {
	e.multiply(matrix(l.dx, rows, l.in), matrix(dy, rows, l.out), matrix(l.weight.Data, l.in, l.out).T(), 0)
	return l.dx
}

func (l layer) args(y, bias cudaops.Buffer, rows int) layerArgs {
	return layerArgs{y: address(y), bias: address(bias), rows: uint64(rows), cols: uint64(l.out), relu: l.relu}
}

// matrix returns the first elements of b as a matrix.
func matrix(b cudaops.Buffer, rows, cols int) cudaops.Matrix {
	return cudaops.MatrixOf(b.Slice(0, rows*cols), rows, cols)
}

// Close waits for the work, frees all memory, and returns the first error of n.
func (n *Network) Close() error {
	if n.losses != nil {
		n.losses.close()
	}
	return n.e.close()
}
