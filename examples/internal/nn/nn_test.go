package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"gompi/comm/ddp"
)

func random(rng *rand.Rand, rows, cols int) Matrix {
	m := NewMatrix(rows, cols)
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
					a, b, got, want := random(rng, m, k), random(rng, k, n), NewMatrix(m, n), NewMatrix(m, n)
					w.mul(got, a, b)
					plain(want, a, b)
					return got, want
				},
				"mulTransA": func() (got, want Matrix) {
					a, b, got, want := random(rng, k, m), random(rng, k, n), NewMatrix(m, n), NewMatrix(m, n)
					w.mulTransA(got, a, b)
					plain(want, transposed(a), b)
					return got, want
				},
				"mulTransB": func() (got, want Matrix) {
					a, b, got, want := random(rng, m, k), random(rng, n, k), NewMatrix(m, n), NewMatrix(m, n)
					w.mulTransB(got, a, b)
					plain(want, a, transposed(b))
					return got, want
				},
			} {
				got, want := product()
				for i := range want.Data {
					if math.Abs(float64(got.Data[i]-want.Data[i])) > 1e-4 {
						t.Fatalf("%s %v with %d workers: element %d is %v, want %v", name, tc, w, i, got.Data[i],
							want.Data[i])
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
	tr := NewMatrix(m.Cols, m.Rows)
	for i := range m.Rows {
		for j := range m.Cols {
			tr.Data[j*tr.Stride+i] = m.Data[i*m.Stride+j]
		}
	}
	return tr
}

func TestLossSurvivesHugeLogits(t *testing.T) {
	logits := Matrix{Rows: 1, Cols: 3, Stride: 3, Data: []float32{1e4, -1e4, 0}}
	if loss := CrossEntropy(logits, []byte{0}, 1); loss != 0 {
		t.Errorf("loss of a certain prediction is %v, want 0", loss)
	}
	logits.Data = []float32{1e4, -1e4, 0}
	if loss := CrossEntropy(logits, []byte{1}, 1); loss != 2e4 {
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
