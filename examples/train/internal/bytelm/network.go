// Package bytelm is a small network that predicts the next byte of a text from the
// bytes before it: an embedding, hidden layers and a softmax over 256 bytes.
package bytelm

import (
	"fmt"
	"math/rand/v2"

	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// A Shape determines the sizes of a Network.
type Shape struct {
	Context int   // bytes of context for a prediction
	Width   int   // numbers per byte of context
	Hidden  []int // sizes of the hidden layers
	Rows    int   // largest number of samples at a time
	Workers nn.Workers
}

// A Network is a model with memory for the activations of one batch. It is used by one goroutine at
// a time.
type Network struct {
	shape  Shape
	embed  *nn.Embedding[byte]
	layers nn.Stack
}

// New returns a Network whose initial weights depend on seed alone.
func New(s Shape, seed uint64) *Network {
	rng := rand.New(rand.NewPCG(seed, 0x6e6574))
	n := &Network{shape: s, embed: nn.NewEmbedding[byte]("embedding", 256, s.Width, s.Context, 1, rng)}
	in := s.Context * s.Width
	for i, out := range s.Hidden {
		n.layers = append(n.layers, nn.NewLinear(fmt.Sprintf("hidden%d", i+1), in, out, nn.BeforeReLU(in), s.Workers,
			rng), &nn.ReLU{})
		in = out
	}
	n.layers = append(n.layers, nn.NewLinear("output", in, 256, nn.Output(in), s.Workers, rng))
	return n
}

// Rows returns the largest number of samples for Evaluate and Backward.
func (n *Network) Rows() int { return n.shape.Rows }

// Params returns the parameters from the first layer to the last. Backward refers to them by their
// index in this list.
func (n *Network) Params() []*ddp.Param {
	return append([]*ddp.Param{n.embed.Table}, n.layers.Params()...)
}

// Evaluate returns the loss, the sum of -ln p over targets, and the number of targets that the
// network predicts as most probable. contexts holds the contexts of the targets, in order.
func (n *Network) Evaluate(contexts, targets []byte) (loss float64, right int) {
	logits := n.forward(contexts)
	right = nn.Hits(logits, targets, 1)
	return nn.CrossEntropy(logits, targets, 0), right
}

// Backward computes the loss and adds scale times its gradient to the parameters' gradients. When
// the gradient of parameter i is complete, from the last layer to the first, it calls ready(i).
// From then on that gradient may travel while the layers below are still computed.
func (n *Network) Backward(contexts, targets []byte, scale float32, ready func(i int)) float64 {
	logits := n.forward(contexts)
	loss := nn.CrossEntropy(logits, targets, scale)
	grad := n.layers.Backward(logits, func(i int) { ready(i + 1) })
	n.embed.Backward(n.layers[0].InputGradient(grad))
	ready(0)
	return loss
}

func (n *Network) forward(contexts []byte) nn.Matrix {
	return n.layers.Forward(n.embed.Forward(contexts))
}
