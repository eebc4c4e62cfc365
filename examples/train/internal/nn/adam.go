package nn

import (
	"math"

	"gompi/comm/ddp"
)

// Adam is the optimiser of Kingma and Ba (2014). Every rank steps its own copy:
// equal gradients keep equal parameters equal.
type Adam struct {
	params []*ddp.Param
	mean   [][]float32 // running mean of each gradient
	square [][]float32 // running mean of its square
}

const (
	adamMean   = 0.9
	adamSquare = 0.99 // short runs: a memory of 100 steps
	adamFloor  = 1e-8
)

// NewAdam returns an Adam that has made no step.
func NewAdam(params []*ddp.Param) *Adam {
	a := &Adam{params: params}
	for _, p := range params {
		a.mean = append(a.mean, make([]float32, len(p.Data)))
		a.square = append(a.square, make([]float32, len(p.Data)))
	}
	return a
}

// Memory returns what Adam remembers from step to step, by the names of the
// parameters: with the parameters, all that a job must save.
func (a *Adam) Memory() []ddp.Slice {
	var all []ddp.Slice
	for i, p := range a.params {
		all = append(all,
			ddp.Slice{Name: "adam.mean/" + p.Name, Data: a.mean[i]},
			ddp.Slice{Name: "adam.square/" + p.Name, Data: a.square[i]})
	}
	return all
}

// Step changes the parameters by their gradients. step counts from 1.
func (a *Adam) Step(step int64, rate float64) {
	// Both means start at zero; dividing by these undoes the bias of that.
	c1 := 1 - math.Pow(adamMean, float64(step))
	c2 := 1 - math.Pow(adamSquare, float64(step))
	k, root := float32(rate/c1), float32(1/math.Sqrt(c2))
	for i, p := range a.params {
		adamStep(p.Data, p.Grad, a.mean[i], a.square[i], k, root)
	}
}

func adamStep(data, grad, mean, square []float32, k, root float32) {
	grad, mean, square = grad[:len(data)], mean[:len(data)], square[:len(data)]
	for i, g := range grad {
		m := adamMean*mean[i] + (1-adamMean)*g
		s := adamSquare*square[i] + (1-adamSquare)*g*g
		mean[i], square[i] = m, s
		data[i] -= k * m / (float32(math.Sqrt(float64(s)))*root + adamFloor)
	}
}
