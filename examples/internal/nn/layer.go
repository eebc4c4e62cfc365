// Package nn has the layers, losses and optimisers of the examples: small networks of float32
// numbers on the processor. A reader can check each layer's forward and backward with a pencil;
// matrix products are gonum's.
package nn

import (
	"slices"

	"gompi/comm/ddp"
)

// A Layer transforms a batch, with a row for each sample, into another. It has memory for one
// batch, and is used by one goroutine at a time.
type Layer interface {
	// Params returns the parameters, if any.
	Params() []*ddp.Param
	// Forward returns the output for x, valid until the next Forward. It may change x.
	Forward(x Matrix) Matrix
	// Backward takes the gradient of the loss by the last output, which it may change, and adds to
	// the gradients of the parameters.
	Backward(dy Matrix)
	// InputGradient returns the gradient by the last input, given Backward's dy. It is a separate
	// step because the gradients of the parameters can travel meanwhile.
	InputGradient(dy Matrix) Matrix
}

// A Stack is a sequence of layers, each of which takes the output of the previous one.
type Stack []Layer

// Params returns the parameters from the first layer to the last.
func (s Stack) Params() (all []*ddp.Param) {
	for _, l := range s {
		all = append(all, l.Params()...)
	}
	return all
}

// Forward returns the output of the last layer, valid until the next Forward.
func (s Stack) Forward(x Matrix) Matrix {
	for _, l := range s {
		x = l.Forward(x)
	}
	return x
}

// Backward takes the gradient of the loss by the last output and adds to the gradients of all
// parameters. When the gradient of parameter i of Params is complete, from the last to the first,
// it calls ready(i). From then on that gradient may travel while the layers below are still
// computed. Backward returns the gradient by the first layer's output, as that layer's Backward
// left it, for InputGradient.
func (s Stack) Backward(dy Matrix, ready func(i int)) Matrix {
	i := len(s.Params())
	for k, l := range slices.Backward(s) {
		l.Backward(dy)
		for range l.Params() {
			i--
			ready(i)
		}
		if k > 0 {
			dy = l.InputGradient(dy)
		}
	}
	return dy
}

// newParam returns a parameter of these dimensions.
func newParam(name string, shape ...int) *ddp.Param {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return &ddp.Param{Name: name, Shape: shape, Data: make([]float32, n), Grad: make([]float32, n)}
}
