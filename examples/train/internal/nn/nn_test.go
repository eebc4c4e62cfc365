package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"gompi/comm/ddp"
)

func random(rng *rand.Rand, rows, cols int) Matrix {
	m := newMatrix(rows, cols)
	for i := range m.Data {
		m.Data[i] = rng.Float32() - 0.5
	}
	return m
}

func TestTiledProductsEqualPlainOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tc := range [][3]int{{1, 1, 1}, {64, 128, 128}, {65, 129, 127}, {200, 3, 300}, {3, 500, 2}, {0, 5, 6}} {
		m, k, n := tc[0], tc[1], tc[2]
		for _, w := range []Workers{0, 1, 2, 5} {
			for name, product := range map[string]func() (got, want Matrix){
				"mul": func() (got, want Matrix) {
					a, b, got, want := random(rng, m, k), random(rng, k, n), newMatrix(m, n), newMatrix(m, n)
					w.mul(got, a, b)
					plain(want, a, b)
					return got, want
				},
				"mulTransA": func() (got, want Matrix) {
					a, b, got, want := random(rng, k, m), random(rng, k, n), newMatrix(m, n), newMatrix(m, n)
					w.mulTransA(got, a, b)
					plain(want, transposed(a), b)
					return got, want
				},
				"mulTransB": func() (got, want Matrix) {
					a, b, got, want := random(rng, m, k), random(rng, n, k), newMatrix(m, n), newMatrix(m, n)
					w.mulTransB(got, a, b)
					plain(want, a, transposed(b))
					return got, want
				},
			} {
				got, want := product()
				for i := range want.Data {
					if math.Abs(float64(got.Data[i]-want.Data[i])) > 1e-4 {
						t.Fatalf("%s %v with %d workers: element %d is %v, want %v", name, tc, w, i, got.Data[i], want.Data[i])
					}
				}
			}
		}
	}
}

func plain(c, a, b Matrix) {
	for i := range a.Rows {
		for j := range b.Cols {
			for k := range a.Cols {
				c.Data[i*c.Stride+j] += a.Data[i*a.Stride+k] * b.Data[k*b.Stride+j]
			}
		}
	}
}

func transposed(m Matrix) Matrix {
	tr := newMatrix(m.Cols, m.Rows)
	for i := range m.Rows {
		for j := range m.Cols {
			tr.Data[j*tr.Stride+i] = m.Data[i*m.Stride+j]
		}
	}
	return tr
}

// One rank with two processors and one with one must compute the same bits, or
// the replicas would drift apart.
func TestResultDoesNotDependOnWorkers(t *testing.T) {
	var want []float32
	for _, w := range []Workers{1, 2, 3, 8} {
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
	for _, l := range net.layers { // biases of 0 would hide a bias that is not used
		for i := range l.bias.Data {
			l.bias.Data[i] = rng.Float32() - 0.5
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
	loss := net.Loss(contexts, targets)
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
	if bits := net.Loss(contexts, targets) / 100 / math.Ln2; bits < 7.9 || bits > 8.1 {
		t.Errorf("untrained loss is %.3f bits per byte: want about 8", bits)
	}
}

func TestLossSurvivesHugeLogits(t *testing.T) {
	logits := Matrix{Rows: 1, Cols: 3, Stride: 3, Data: []float32{1e4, -1e4, 0}}
	if loss := crossEntropy(logits, []byte{0}, 1); loss != 0 {
		t.Errorf("loss of a certain prediction is %v, want 0", loss)
	}
	logits.Data = []float32{1e4, -1e4, 0}
	if loss := crossEntropy(logits, []byte{1}, 1); loss != 2e4 {
		t.Errorf("loss of a certain mistake is %v, want 20000", loss)
	}
}

func TestAdamFindsTheMinimum(t *testing.T) {
	p := newParam("p", 2)
	target := []float32{3, -2}
	adam := NewAdam([]*ddp.Param{p})
	for step := range int64(500) {
		for i := range p.Grad {
			p.Grad[i] = 2 * (p.Data[i] - target[i]) * float32(i*100+1)
		}
		adam.Step(step+1, 0.1*(1-float64(step)/500))
	}
	for i := range target {
		if math.Abs(float64(p.Data[i]-target[i])) > 0.01 {
			t.Errorf("p[%d] = %v, want %v", i, p.Data[i], target[i])
		}
	}
}

func BenchmarkProducts(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const rows, in, out = 256, 256, 512
	x, w, y := random(rng, rows, in), random(rng, in, out), random(rng, rows, out)
	for name, f := range map[string]func(){
		"mul":       func() { Workers(1).mul(y, x, w) },
		"mulTransA": func() { Workers(1).mulTransA(w, x, y) },
		"mulTransB": func() { Workers(1).mulTransB(x, y, w) },
		"gonum":     func() { blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, x, w, 1, y) },
	} {
		b.Run(fmt.Sprintf("%s-%dx%dx%d", name, rows, in, out), func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(2*rows*in*out*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
