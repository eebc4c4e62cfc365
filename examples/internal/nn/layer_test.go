package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm/ddp"
)

// picture is small, and no number of it is another: that would hide two that were exchanged.
var picture = Image{Height: 9, Width: 11, Channels: 3}

// convolutional returns a network of every kind of layer.
func convolutional(rng *rand.Rand, workers Workers) Stack {
	conv1, shape := NewConvolution("conv1", picture, 3, 4, workers, rng)
	pool, shape := NewMaxPool(shape) // of 7 x 9 pixels: a line and a column are left out
	conv2, shape := NewConvolution("conv2", shape, 2, 5, workers, rng)
	net := Stack{conv1, &ReLU{}, pool, conv2, &ReLU{},
		NewLinear("hidden", shape.Len(), 6, BeforeReLU(shape.Len()), workers, rng), &ReLU{},
		NewLinear("output", 6, 7, 0.5, workers, rng)}
	for _, p := range net.Params() {
		for i := range p.Data { // biases of 0 would hide a bias that is not used
			if p.Data[i] == 0 {
				p.Data[i] = rng.Float32() - 0.5
			}
		}
	}
	return net
}

// slope returns the derivative of loss along a random direction of data, from two losses, and from
// the gradient.
func slope(rng *rand.Rand, data, grad []float32, loss func() float64) (got, want float64) {
	saved := slices.Clone(data)
	direction := make([]float64, len(data))
	for i := range direction {
		direction[i] = rng.NormFloat64()
		want += direction[i] * float64(grad[i])
	}
	const h = 1e-4
	at := func(h float64) float64 {
		for i, d := range direction {
			data[i] = saved[i] + float32(h*d)
		}
		defer copy(data, saved)
		return loss()
	}
	return (at(h) - at(-h)) / (2 * h), want
}

func TestGradientsOfAllLayersAgreeWithFiniteDifferences(t *testing.T) {
	const n = 5
	rng := rand.New(rand.NewPCG(4, 2))
	net := convolutional(rng, 2)
	x := random(rng, n, picture.Len())
	targets := []byte{0, 6, 3, 3, 1}
	loss := func() float64 { return CrossEntropy(net.Forward(copyOf(x)), targets, 0) }

	logits := net.Forward(copyOf(x))
	CrossEntropy(logits, targets, 1)
	dx := net[0].InputGradient(net.Backward(logits, func(int) {}))
	for _, p := range net.Params() {
		if got, want := slope(rng, p.Data, p.Grad, loss); math.Abs(got-want) > 0.01*math.Abs(want)+0.02 {
			t.Errorf("%s: slope %.4f, gradient says %.4f", p.Name, got, want)
		}
	}
	if got, want := slope(rng, x.Data, dx.Data, loss); math.Abs(got-want) > 0.01*math.Abs(want)+0.02 {
		t.Errorf("input: slope %.4f, gradient says %.4f", got, want)
	}
}

func copyOf(m Matrix) Matrix { return View(slices.Clone(m.Data), m.Rows, m.Cols) }

func TestGradientOfSquaredErrorAgreesWithFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	table := NewEmbedding[int32]("table", 9, 4, 2, 1, rng)
	out := NewLinear("output", 8, 1, 0.5, 1, rng)
	ids, targets := []int32{0, 8, 3, 3, 8, 1}, []float32{1, -2, 0.5}
	loss := func() float64 { return SquaredError(out.Forward(table.Forward(ids)), targets, 0) }

	y := out.Forward(table.Forward(ids))
	SquaredError(y, targets, 0.5)
	out.Backward(y)
	table.Backward(out.InputGradient(y))
	for _, p := range []*ddp.Param{table.Table, out.Weight, out.Bias} {
		if got, want := slope(rng, p.Data, p.Grad, loss); math.Abs(got/2-want) > 0.01*math.Abs(want)+0.02 {
			t.Errorf("%s: slope %.4f, gradient says %.4f", p.Name, got/2, want)
		}
	}
}

// A convolution by its definition.
func TestConvolutionIsASumOverTheSquare(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	c, shape := NewConvolution("c", picture, 4, 2, 3, rng)
	c.Bias.Data[1] = 7
	x := random(rng, 2, picture.Len())
	y := c.Forward(x)
	if want := (Image{6, 8, 2}); shape != want || y.Rows != 2 || y.Cols != want.Len() {
		t.Fatalf("the output is %v, a batch of it %d x %d; want %v", shape, y.Rows, y.Cols, want)
	}
	for _, at := range [][4]int{{0, 0, 0, 0}, {1, 5, 7, 1}, {0, 2, 3, 1}, {1, 0, 6, 0}} {
		p, i, j, channel := at[0], at[1], at[2], at[3]
		want := c.Bias.Data[channel]
		for a := range 4 {
			for b := range 4 {
				for in := range picture.Channels {
					want += x.Data[p*x.Stride+((i+a)*picture.Width+j+b)*picture.Channels+in] *
						c.Weight.Data[((channel*4+b)*4+a)*picture.Channels+in]
				}
			}
		}
		if got := y.Data[p*y.Stride+(i*shape.Width+j)*2+channel]; math.Abs(float64(got-want)) > 1e-4 {
			t.Errorf("output %v is %v, want %v", at, got, want)
		}
	}
}

func TestMaxPoolTakesTheLargestAndSendsItsGradientBack(t *testing.T) {
	m, shape := NewMaxPool(Image{2, 5, 2})
	if want := (Image{1, 2, 2}); shape != want {
		t.Fatalf("the output is %v, want %v", shape, want)
	}
	x := View([]float32{
		1, 8, 2, 7, 3, 6, 4, 5, 99, 99,
		-1, 0, 5, 0, 0, 0, 0, 9, 99, 99,
	}, 1, 20)
	if y := m.Forward(x); !slices.Equal(y.Data, []float32{5, 8, 4, 9}) {
		t.Errorf("the output is %v", y.Data)
	}
	want := make([]float32, 20)
	want[12], want[1], want[6], want[17] = 10, 20, 30, 40
	if dx := m.InputGradient(View([]float32{10, 20, 30, 40}, 1, 4)); !slices.Equal(dx.Data, want) {
		t.Errorf("the gradient is %v, want %v", dx.Data, want)
	}
}

// Batches may be of any size, one after the other, and of none. The result does not depend on how
// many compute.
func TestNetworksTakeBatchesOfAnySize(t *testing.T) {
	var want []float32
	for _, workers := range []Workers{1, 3} {
		rng := rand.New(rand.NewPCG(6, 6))
		net := convolutional(rng, workers)
		for _, n := range []int{3, 0, 7, 1} {
			logits := net.Forward(random(rng, n, picture.Len()))
			CrossEntropy(logits, make([]byte, n), 1)
			net.Backward(logits, func(int) {})
		}
		var got []float32
		for _, p := range net.Params() {
			got = append(got, p.Grad...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("gradients with %d workers are not those with 1", workers)
		}
	}
}

func TestHitsCountTheTargetAmongTheLargest(t *testing.T) {
	nan := float32(math.NaN())
	logits := View([]float32{
		5, 4, 3, 2,
		1, 1, 1, 1, // of equal ones the first is taken
		nan, nan, nan, nan, // and NaNs are never
	}, 3, 4)
	for k, want := range map[int]int{1: 0, 2: 2, 3: 2} {
		if got := Hits(logits, []byte{1, 1, 0}, k); got != want {
			t.Errorf("%d of 3 targets are among the %d largest, want %d", got, k, want)
		}
	}
}

// The numbers come from torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01).
func TestSGDHasMomentumAndDecay(t *testing.T) {
	p := newParam("p", 1)
	p.Data[0] = 1
	sgd := NewSGD([]*ddp.Param{p}, 0.9, 0.01)
	for i, want := range []float32{0.799, 0.517301, 0.1632546} {
		p.Grad[0] = []float32{2, 1, 1}[i]
		sgd.Step(0.1)
		if math.Abs(float64(p.Data[0]-want)) > 1e-6 {
			t.Errorf("after step %d the parameter is %v, want %v", i+1, p.Data[0], want)
		}
	}
	if m := sgd.Memory(); len(m) != 1 || m[0].Name != "sgd.velocity/p" || m[0].Data.Len() != 1 {
		t.Errorf("memory is %v", m)
	}
}

func TestAdamWithDecayShrinksWhatHasNoGradient(t *testing.T) {
	p := newParam("p", 2)
	p.Data[0], p.Data[1] = 1, -2
	adam := NewAdam([]*ddp.Param{p})
	adam.Decay = 0.5
	adam.Step(1, 0.1)
	if p.Data[0] != 0.95 || p.Data[1] != -1.9 {
		t.Errorf("parameters are %v, want 0.95 and -1.9", p.Data)
	}
}

// With gradients of all rows, StepRows is Step bit for bit; with gradients of some, other rows
// stay.
func TestAdamStepsRows(t *testing.T) {
	whole, rows := newParam("p", 6), newParam("p", 6)
	rows.Row, rows.Grad = 2, nil
	a, b := NewAdam([]*ddp.Param{whole}), NewAdam([]*ddp.Param{rows})
	a.Decay, b.Decay = 0.1, 0.1
	for step := range int64(3) {
		for i := range whole.Grad {
			whole.Grad[i] = float32(i+1) * float32(step-1)
		}
		g := whole.Grad
		a.Step(step+1, 0.1)
		b.Step(step+1, 0.1) // has nothing to do
		b.StepRows(0, []int32{2, 0, 1}, []float32{g[4], g[5], g[0], g[1], g[2], g[3]}, step+1, 0.1)
	}
	if !slices.Equal(whole.Data, rows.Data) {
		t.Errorf("by rows the parameters are %v, want %v", rows.Data, whole.Data)
	}
	b.StepRows(0, []int32{1}, []float32{1, 1}, 4, 0.1)
	for i := range rows.Data {
		if moved := rows.Data[i] != whole.Data[i]; moved != (i/2 == 1) {
			t.Errorf("after a step of row 1 number %d is %v, before it was %v", i, rows.Data[i], whole.Data[i])
		}
	}
}
