package cudann

import (
	"gompi/comm/ddp"
	"gompi/cudaops"
	"gompi/examples/internal/nn"
)

// Adam is nn's Adam for a Network, in the memory of its device.
type Adam struct {
	n            *Network
	mean, square []cudaops.Buffer
}

// NewAdam returns an Adam that has made no step. Its memory is n's.
func NewAdam(n *Network) (*Adam, error) {
	a := &Adam{n: n}
	for _, p := range n.Params() {
		a.mean = append(a.mean, alloc[float32](n.e, p.Data.Len()))
		a.square = append(a.square, alloc[float32](n.e, p.Data.Len()))
	}
	return a, n.e.err
}

// Memory returns Adam's memory from step to step, by the names of nn's.
func (a *Adam) Memory() []ddp.Slice {
	var all []ddp.Slice
	for i, p := range a.n.Params() {
		all = append(all, nn.AdamMemory(p.Name, a.mean[i], a.square[i])...)
	}
	return all
}

// Step enqueues a step on the stream. step counts from 1.
func (a *Adam) Step(step int64, rate float64) error {
	k, root := nn.AdamFactors(step, rate)
	for i, p := range a.n.Params() {
		launch(a.n.e, "adam", p.Data.Len(), adamArgs{
			data: address(p.Data), gradient: address(p.Grad), mean: address(a.mean[i]), square: address(a.square[i]),
			n: uint64(p.Data.Len()), k: k, root: root,
			keepMean: nn.AdamMean, addMean: 1 - nn.AdamMean, keepSquare: nn.AdamSquare, addSquare: 1 - nn.AdamSquare,
			least: nn.AdamFloor,
		})
	}
	return a.n.e.err
}
