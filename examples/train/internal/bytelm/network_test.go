package bytelm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// One rank with two processors and one with one must compute the same bits, or
// the replicas would drift apart.
func TestResultDoesNotDependOnWorkers(t *testing.T) {
	var want []float32
	for _, w := range []nn.Workers{1, 2, 3, 8} {
		net := New(Shape{Context: 4, Width: 40, Hidden: []int{300}, Rows: 200, Workers: w}, 1)
		contexts, targets := samples(200, 4)
		net.Backward(contexts, targets, 1, func(int) {})
		var got []float32
		for _, p := range net.Params() {
			got = append(got, p.Grad...)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("gradients with %d workers are not those with 1", w)
		}
	}
}

func samples(n, context int) (contexts, targets []byte) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range n {
		for range context {
			contexts = append(contexts, byte(rng.IntN(256)))
		}
		targets = append(targets, byte(rng.IntN(256)))
	}
	return contexts, targets
}

// The derivative along a direction, from two losses, must be the gradient's
// component in it. Directions are random within one parameter at a time.
func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	const scale, n, context = 0.25, 20, 3
	net := New(Shape{Context: context, Width: 5, Hidden: []int{17, 9}, Rows: n, Workers: 2}, 3)
	rng := rand.New(rand.NewPCG(2, 2))
	for _, p := range net.Params() {
		for i := range p.Data { // biases of 0 would hide a bias that is not used
			if p.Data[i] == 0 {
				p.Data[i] = rng.Float32() - 0.5
			}
		}
	}
	contexts, targets := samples(n, context)
	net.Backward(contexts, targets, scale, func(int) {})
	for _, p := range net.Params() {
		direction := make([]float32, len(p.Data))
		var want float64
		for i := range direction {
			direction[i] = float32(rng.NormFloat64())
			want += float64(direction[i]) * float64(p.Grad[i])
		}
		const h = 1e-4
		up := lossAt(net, p, direction, h, contexts, targets)
		down := lossAt(net, p, direction, -h, contexts, targets)
		got := scale * (up - down) / (2 * h)
		if math.Abs(got-want) > 0.01*math.Abs(want)+0.01 {
			t.Errorf("%s: slope %.4f, gradient says %.4f", p.Name, got, want)
		}
	}
}

func lossAt(net *Network, p *ddp.Param, direction []float32, h float32, contexts, targets []byte) float64 {
	saved := slices.Clone(p.Data)
	for i, d := range direction {
		p.Data[i] += h * d
	}
	loss, _ := net.Evaluate(contexts, targets)
	copy(p.Data, saved)
	return loss
}

func TestGradientsOfPassesAddUp(t *testing.T) {
	shape := Shape{Context: 2, Width: 4, Hidden: []int{8}, Rows: 10, Workers: 1}
	contexts, targets := samples(10, 2)
	whole, parts := New(shape, 1), New(shape, 1)
	loss := whole.Backward(contexts, targets, 1, func(int) {})
	for _, cut := range [][2]int{{0, 3}, {3, 3}, {3, 10}} { // one pass is empty
		loss -= parts.Backward(contexts[2*cut[0]:2*cut[1]], targets[cut[0]:cut[1]], 1, func(int) {})
	}
	if math.Abs(loss) > 1e-4 {
		t.Errorf("losses of the parts differ from the whole by %v", loss)
	}
	for i, p := range whole.Params() {
		for j, want := range p.Grad {
			if got := parts.Params()[i].Grad[j]; math.Abs(float64(got-want)) > 1e-5 {
				t.Fatalf("%s: gradient %d is %v in parts, %v as a whole", p.Name, j, got, want)
			}
		}
	}
}

func TestEachParameterIsReadyOnceAndFinal(t *testing.T) {
	net := New(Shape{Context: 2, Width: 4, Hidden: []int{8, 8}, Rows: 10, Workers: 1}, 1)
	contexts, targets := samples(10, 2)
	params := net.Params()
	frozen := make([][]float32, len(params))
	var order []int
	net.Backward(contexts, targets, 1, func(i int) {
		order = append(order, i)
		frozen[i] = slices.Clone(params[i].Grad)
	})
	if want := []int{6, 5, 4, 3, 2, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("parameters were ready in order %v, want %v", order, want)
	}
	for i, p := range params {
		if !slices.Equal(p.Grad, frozen[i]) {
			t.Errorf("gradient of %s changed after it was ready", p.Name)
		}
		if slices.Max(p.Grad) == 0 && slices.Min(p.Grad) == 0 {
			t.Errorf("gradient of %s is zero", p.Name)
		}
	}
}

func TestUntrainedNetworkGuessesAlmostUniformly(t *testing.T) {
	net := New(Shape{Context: 8, Width: 32, Hidden: []int{64}, Rows: 100, Workers: 1}, 1)
	contexts, targets := samples(100, 8)
	loss, _ := net.Evaluate(contexts, targets)
	if bits := loss / 100 / math.Ln2; bits < 7.9 || bits > 8.1 {
		t.Errorf("untrained loss is %.3f bits per byte: want about 8", bits)
	}
}
