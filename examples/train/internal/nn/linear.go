package nn

import (
	"math"
	"math/rand/v2"

	"gompi/comm/ddp"
)

// A linear layer computes y = x W + b, and max(0, y) if relu is set.
type linear struct {
	weight, bias *ddp.Param
	relu         bool
	in, out      int
	workers      Workers

	x     Matrix // input of the last forward
	y, dx Matrix // room for the output and for the gradient of the input
}

// newLinear returns a layer for up to rows samples at a time. Weights of hidden
// layers are drawn so that the variance of a signal survives them (He et al.
// 2015), those of the output small, so that the first guess is nearly uniform.
func newLinear(name string, rows, in, out int, relu bool, workers Workers, rng *rand.Rand) *linear {
	l := &linear{
		weight: newParam(name+".weight", in*out), bias: newParam(name+".bias", out),
		relu: relu, in: in, out: out, workers: workers,
		y: newMatrix(rows, out), dx: newMatrix(rows, in),
	}
	scale := 0.1 / math.Sqrt(float64(in))
	if relu {
		scale = math.Sqrt(2 / float64(in))
	}
	for i := range l.weight.Data {
		l.weight.Data[i] = float32(rng.NormFloat64() * scale)
	}
	return l
}

// forward returns the output for x, valid until the next forward.
func (l *linear) forward(x Matrix) Matrix {
	l.x = x
	y := top(l.y, x.Rows)
	for i := range y.Rows {
		copy(y.Data[i*y.Stride:][:y.Cols], l.bias.Data)
	}
	l.workers.mul(y, x, view(l.weight.Data, l.in, l.out))
	if l.relu {
		for i, v := range y.Data {
			y.Data[i] = max(0, v)
		}
	}
	return y
}

// backward takes the gradient of the loss by the last output and adds to the
// gradients of weight and bias. It replaces dy by the gradient before relu.
func (l *linear) backward(dy Matrix) {
	if l.relu {
		for i, v := range l.y.Data[:len(dy.Data)] {
			if v == 0 {
				dy.Data[i] = 0
			}
		}
	}
	for i := range dy.Rows {
		for j, g := range dy.Data[i*dy.Stride:][:dy.Cols] {
			l.bias.Grad[j] += g
		}
	}
	l.workers.mulTransA(view(l.weight.Grad, l.in, l.out), l.x, dy)
}

// inputGradient returns the gradient by the last input, given what backward has
// left in dy. It is a step of its own because the gradients of weight and bias
// can travel meanwhile.
func (l *linear) inputGradient(dy Matrix) Matrix {
	dx := top(l.dx, dy.Rows)
	clear(dx.Data)
	l.workers.mulTransB(dx, dy, view(l.weight.Data, l.in, l.out))
	return dx
}
