package cudaops_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// newBLAS returns a BLAS on a stream of its own.
func newBLAS(t *testing.T, d *cudaops.Device) (*cudaops.BLAS, *cudaops.Stream) {
	t.Helper()
	s := newStream(t, d)
	b, err := s.NewBLAS()
	if cudatest.Real() && err != nil && strings.Contains(err.Error(), "no cuBLAS: ") {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b, s
}

func TestProductsAreThoseOfTheHost(t *testing.T) {
	d := device(t)
	blas, s := newBLAS(t, d)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, shape := range [][3]int{{1, 1, 1}, {2, 3, 4}, {17, 5, 33}, {0, 3, 2}, {3, 2, 0}, {64, 1, 7}} {
		m, n, k := shape[0], shape[1], shape[2]
		for flags := range 8 {
			transposeX, transposeY, beta := flags&1 != 0, flags&2 != 0, float32(flags>>2)/2
			x, hostX := randomMatrix(t, d, rng, m, k, transposeX)
			y, hostY := randomMatrix(t, d, rng, k, n, transposeY)
			z, hostZ := randomMatrix(t, d, rng, m, n, false)
			must(t, blas.Multiply(z, x, y, beta))
			must(t, s.Sync())
			got := make([]float32, m*n)
			must(t, mem.Copy(mem.Of(got), z.Elements))
			for i := range m {
				for j := range n {
					want := beta * hostZ(i, j)
					for l := range k {
						want += hostX(i, l) * hostY(l, j)
					}
					if math.Abs(float64(got[i*n+j]-want)) > 1e-4 {
						t.Fatalf("%v times %v plus %v: element %d, %d is %v, want %v", x, y, beta, i, j,
							got[i*n+j], want)
					}
				}
			}
		}
	}
}

// randomMatrix returns a matrix on d and a function that returns its elements.
func randomMatrix(t *testing.T, d *cudaops.Device, rng *rand.Rand, rows, cols int, transposed bool) (cudaops.Matrix,
	func(i, j int) float32) {
	t.Helper()
	host := make([]float32, rows*cols)
	for i := range host {
		host[i] = rng.Float32() - 0.5
	}
	m := cudaops.MatrixOf(upload(t, d, host), rows, cols)
	if transposed {
		m = cudaops.MatrixOf(m.Elements, cols, rows).T()
	}
	return m, func(i, j int) float32 {
		row, col := m.Strides()
		return host[i*row+j*col]
	}
}

func TestProductsOfOtherShapesAreRefused(t *testing.T) {
	d := device(t)
	blas, _ := newBLAS(t, d)
	b := upload(t, d, make([]float32, 12))
	z, x, y := cudaops.MatrixOf(b.Slice(0, 8), 2, 4), cudaops.MatrixOf(b.Slice(0, 6), 2, 3), cudaops.MatrixOf(b, 3, 4)
	for want, err := range map[string]error{
		"of 2 x 3 and 2 x 3 to 2 x 4":            blas.Multiply(z, x, x, 0),
		"of 2 x 3 and 3 x 4 to 2 x 4 transposed": blas.Multiply(cudaops.MatrixOf(z.Elements, 4, 2).T(), x, y, 0),
		"3 x 4 in 8 elements of float32":         blas.Multiply(z, x, cudaops.MatrixOf(z.Elements, 3, 4), 0),
		"elements of float32 in host": blas.Multiply(z, x,
			cudaops.MatrixOf(mem.Of(make([]float32, 12)), 3, 4), 0),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestErrorsNameTheStatusOfCUBLAS(t *testing.T) {
	cudatest.NeedFake(t)
	d := device(t)
	blas, s := newBLAS(t, d)
	z := cudaops.MatrixOf(upload(t, d, make([]float32, 1)), 1, 1)
	for call, do := range map[string]func() error{
		"cublasCreate_v2": func() error { _, err := s.NewBLAS(); return err },
		"cublasSgemm_v2":  func() error { return blas.Multiply(z, z, z, 0) },
	} {
		t.Setenv("FAKECUDA_FAIL", call+":1=3")
		var failure *cudaops.Error
		if err := do(); !errors.As(err, &failure) || failure.Call != call ||
			!strings.Contains(err.Error(), "CUBLAS_STATUS_ALLOC_FAILED (3): the resource allocation failed") {
			t.Errorf("%s fails with %v", call, err)
		}
	}
}

func jobBLAS() error {
	d, err := cudaops.Open(0)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	_, err = s.NewBLAS()
	return err
}

func TestWithoutCUBLASOneErrorSaysWhy(t *testing.T) {
	cudatest.NeedFake(t)
	for name, want := range map[string]string{
		"/nowhere/libcublas.so": "no cuBLAS: /nowhere/libcublas.so: cannot open shared object file: No such file or directory",
		"libc.so.6":             "no cuBLAS: libc.so.6 has no function cublasCreate_v2",
	} {
		if got := run(t, "blas", fmt.Sprintf("%s=%s", env.LibCUBLAS, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
