package nn

import (
	"math"

	"gompi/comm"
	"gompi/comm/ddp"
)

// Adam is the optimiser of Kingma and Ba (2014). Every rank steps its own copy: equal gradients
// keep equal parameters equal.
type Adam struct {
	// Decay, if not 0, is the share that each parameter loses in a step at rate 1, beside its
	// gradient's effect (AdamW, Loshchilov and Hutter 2019).
	Decay float64

	params []*ddp.Param
	mean   [][]float32 // running mean of each gradient
	square [][]float32 // running mean of its square
}

// Adam's decay rates of the two means per step, and the term that avoids division by zero.
const (
	AdamMean   = 0.9
	AdamSquare = 0.99 // short runs: a memory of 100 steps
	AdamFloor  = 1e-8
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

// Memory returns Adam's memory from step to step, by the names of the parameters: with the
// parameters, all that a job must save.
func (a *Adam) Memory() []ddp.Slice {
	var all []ddp.Slice
	for i, p := range a.params {
		all = append(all, AdamMemory(p.Name, comm.Of(a.mean[i]), comm.Of(a.square[i]))...)
	}
	return all
}

// AdamMemory returns the slices of a parameter's means for a snapshot.
func AdamMemory(param string, mean, square comm.Buffer) []ddp.Slice {
	return []ddp.Slice{{Name: "adam.mean/" + param, Data: mean}, {Name: "adam.square/" + param, Data: square}}
}

// Step changes the parameters by their gradients, except parameters with rows. step counts from 1.
func (a *Adam) Step(step int64, rate float64) {
	k, root := AdamFactors(step, rate)
	keep := float32(1 - rate*a.Decay)
	for i, p := range a.params {
		if p.Row == 0 {
			scale(p.Data, keep)
			adamStep(p.Data, p.Grad, a.mean[i], a.square[i], k, root)
		}
	}
}

// StepRows changes rows of parameter i of NewAdam. values has the rows' gradients. Other rows and
// their means are unchanged. So the cost depends on the changed rows only, and the curve differs
// from Step's, in which all other gradients are 0. torch.optim.SparseAdam does the same.
func (a *Adam) StepRows(i int, rows []int32, values []float32, step int64, rate float64) {
	k, root := AdamFactors(step, rate)
	keep := float32(1 - rate*a.Decay)
	p := a.params[i]
	for j, r := range rows {
		lo, hi := int(r)*p.Row, (int(r)+1)*p.Row
		scale(p.Data[lo:hi], keep)
		adamStep(p.Data[lo:hi], values[j*p.Row:], a.mean[i][lo:hi], a.square[i][lo:hi], k, root)
	}
}

func scale(data []float32, by float32) {
	if by == 1 {
		return
	}
	for i := range data {
		data[i] *= by
	}
}

// AdamFactors returns a step's factors for the mean of the gradients, and for the root of the mean
// of their squares. Both means start at zero; the factors undo that bias.
func AdamFactors(step int64, rate float64) (k, root float32) {
	c1 := 1 - math.Pow(AdamMean, float64(step))
	c2 := 1 - math.Pow(AdamSquare, float64(step))
	return float32(rate / c1), float32(1 / math.Sqrt(c2))
}

func adamStep(data, grad, mean, square []float32, k, root float32) {
	grad, mean, square = grad[:len(data)], mean[:len(data)], square[:len(data)]
	for i, g := range grad {
		m := AdamMean*mean[i] + (1-AdamMean)*g
		s := AdamSquare*square[i] + (1-AdamSquare)*g*g
		mean[i], square[i] = m, s
		data[i] -= k * m / (float32(math.Sqrt(float64(s)))*root + AdamFloor)
	}
}
