// Package nn is a small network that predicts the next byte of a text from the
// bytes before it: an embedding, hidden layers and a softmax over 256 bytes.
// Each layer has a forward and a backward that a reader can check with a
// pencil; matrix products are gonum's.
package nn

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gompi/comm/ddp"
)

// A Shape is what the sizes of a Network follow from.
type Shape struct {
	Context int   // bytes that a prediction sees
	Width   int   // numbers per byte of context
	Hidden  []int // sizes of the hidden layers
	Rows    int   // samples at a time, at most
	Workers Workers
}

// A Network is a model with room for the activations of one batch. It is used
// by one goroutine at a time.
type Network struct {
	shape  Shape
	embed  *embedding
	layers []*linear
}

// New returns a Network whose initial weights depend on seed alone.
func New(s Shape, seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 0x6e6574))
	n := &Network{shape: s, embed: newEmbedding(s.Rows, s.Context, s.Width, rng)}
	in := s.Context * s.Width
	for i, out := range s.Hidden {
		n.layers = append(n.layers, newLinear(fmt.Sprintf("hidden%d", i+1), s.Rows, in, out, true, s.Workers, rng))
		in = out
	}
	n.layers = append(n.layers, newLinear("output", s.Rows, in, 256, false, s.Workers, rng))
	return n
}

func newParam(name string, n int) *ddp.Param {
	return &ddp.Param{Name: name, Data: make([]float32, n), Grad: make([]float32, n)}
}

// Rows returns how many samples Loss and Backward take at most.
func (n *Network) Rows() int { return n.shape.Rows }

// Params returns the parameters from the first layer to the last. Backward
// refers to them by their place in this list.
func (n *Network) Params() []*ddp.Param {
	ps := []*ddp.Param{n.embed.table}
	for _, l := range n.layers {
		ps = append(ps, l.weight, l.bias)
	}
	return ps
}

// Loss returns the sum of -ln p over targets. contexts holds the context of
// each target, one after the other.
func (n *Network) Loss(contexts, targets []byte) float64 {
	return crossEntropy(n.forward(contexts), targets, 0)
}

// Backward computes the Loss and adds scale times its gradient to the
// parameters' gradients. It calls ready(i) as soon as parameter i has all of
// it, from the last layer to the first: from then on the gradient may travel
// while the layers below are still computed.
func (n *Network) Backward(contexts, targets []byte, scale float32, ready func(i int)) float64 {
	logits := n.forward(contexts)
	loss := crossEntropy(logits, targets, scale)
	grad := logits
	for i, l := range slices.Backward(n.layers) {
		l.backward(grad)
		ready(2*i + 2) // bias
		ready(2*i + 1) // weight
		grad = l.inputGradient(grad)
	}
	n.embed.backward(grad)
	ready(0)
	return loss
}

func (n *Network) forward(contexts []byte) Matrix {
	x := n.embed.forward(contexts)
	for _, l := range n.layers {
		x = l.forward(x)
	}
	return x
}
