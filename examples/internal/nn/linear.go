package nn

import (
	"math"
	"math/rand/v2"

	"gompi/comm/ddp"
)

// A Linear layer computes y = x W + b.
type Linear struct {
	Weight, Bias *ddp.Param // W is in x out
	in, out      int
	workers      Workers

	x     Matrix // input of the last Forward
	y, dx Matrix // room for the output and for the gradient of the input
}

// NewLinear returns a layer with random weights of the given deviation.
func NewLinear(name string, in, out int, deviation float64, workers Workers, rng *rand.Rand) *Linear {
	l := &Linear{Weight: newParam(name+".weight", in, out), Bias: newParam(name+".bias", out), in: in, out: out,
		workers: workers}
	for i := range l.Weight.Data {
		l.Weight.Data[i] = float32(rng.NormFloat64() * deviation)
	}
	return l
}

// BeforeReLU is the deviation of weights, of in inputs to each output, that preserves the variance
// of a signal through a layer and the following ReLU (He et al. 2015).
func BeforeReLU(in int) float64 { return math.Sqrt(2 / float64(in)) }

// Cautious is a smaller deviation than BeforeReLU: high learning rates do not make the network
// diverge at once. PyTorch's layers begin with it.
func Cautious(in int) float64 { return 1 / math.Sqrt(3*float64(in)) }

// Output is the deviation of the weights of the last layer: small, so that the first guess is
// nearly the same for all classes.
func Output(in int) float64 { return 0.1 / math.Sqrt(float64(in)) }

// Params returns W and b.
func (l *Linear) Params() []*ddp.Param { return []*ddp.Param{l.Weight, l.Bias} }

// Forward returns x W + b.
func (l *Linear) Forward(x Matrix) Matrix {
	l.x = x
	y := room(&l.y, x.Rows, l.out)
	for i := range y.Rows {
		copy(y.Data[i*y.Stride:][:y.Cols], l.Bias.Data)
	}
	l.workers.mul(y, x, View(l.Weight.Data, l.in, l.out))
	return y
}

// Backward adds to the gradients of W and b.
func (l *Linear) Backward(dy Matrix) {
	addRows(l.Bias.Grad, dy)
	l.workers.mulTransA(View(l.Weight.Grad, l.in, l.out), l.x, dy)
}

// InputGradient returns dy Wᵀ.
func (l *Linear) InputGradient(dy Matrix) Matrix {
	dx := room(&l.dx, dy.Rows, l.in)
	clear(dx.Data)
	l.workers.mulTransB(dx, dy, View(l.Weight.Data, l.in, l.out))
	return dx
}

// addRows adds the rows of m to sum.
func addRows(sum []float32, m Matrix) {
	for i := range m.Rows {
		for j, v := range m.Data[i*m.Stride:][:m.Cols] {
			sum[j] += v
		}
	}
}

// A ReLU layer computes max(0, x), in the memory of x.
type ReLU struct{ y Matrix }

// Params returns nil.
func (r *ReLU) Params() []*ddp.Param { return nil }

// Forward replaces x by max(0, x).
func (r *ReLU) Forward(x Matrix) Matrix {
	for i, v := range x.Data {
		x.Data[i] = max(0, v)
	}
	r.y = x
	return x
}

// Backward has nothing to do.
func (r *ReLU) Backward(Matrix) {}

// InputGradient sets dy to zero where the output was zero.
func (r *ReLU) InputGradient(dy Matrix) Matrix {
	for i, v := range r.y.Data[:len(dy.Data)] {
		bits := math.Float32bits(dy.Data[i])
		if v == 0 {
			bits = 0 // chosen without a branch, which the processor would often mispredict
		}
		dy.Data[i] = math.Float32frombits(bits)
	}
	return dy
}
