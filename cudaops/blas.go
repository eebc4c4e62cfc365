package cudaops

import (
	"fmt"

	"gompi/cudaops/internal/driver"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// A Matrix is float32 elements in device memory, row after row, and a small value; copies share the
// elements.
type Matrix struct {
	Elements   Buffer
	Rows, Cols int
	Transposed bool // column-major: elements of a column are adjacent
}

// MatrixOf returns b as a matrix of rows rows and cols columns.
func MatrixOf(b Buffer, rows, cols int) Matrix { return Matrix{Elements: b, Rows: rows, Cols: cols} }

// T returns the transpose of m, the same memory.
func (m Matrix) T() Matrix {
	m.Rows, m.Cols, m.Transposed = m.Cols, m.Rows, !m.Transposed
	return m
}

// Strides returns the distances, in elements, between rows and between columns.
func (m Matrix) Strides() (row, col int) {
	if m.Transposed {
		return 1, max(1, m.Rows)
	}
	return max(1, m.Cols), 1
}

// A BLAS multiplies matrices on a Stream, by NVIDIA's cuBLAS. One goroutine at a time uses a BLAS
// and its Stream.
type BLAS struct {
	s      *Stream
	handle driver.BLAS
}

// NewBLAS returns a BLAS that works on s, or an error that says why there is no cuBLAS. The first
// call opens the library, which takes a part of a second and some megabytes of the device. Close
// frees the BLAS, before s.
func (s *Stream) NewBLAS() (*BLAS, error) {
	if err := driver.LoadBLAS(env.String(env.LibCUBLAS)); err != nil {
		return nil, fmt.Errorf("no cuBLAS: %w", err)
	}
	handle, err := driver.NewBLAS(s.ctx, s.handle)
	if err != nil {
		return nil, s.d.failed("cuBLAS", err)
	}
	return &BLAS{s, handle}, nil
}

// Close frees b.
func (b *BLAS) Close() error { return b.s.d.failed("cuBLAS", driver.CloseBLAS(b.s.ctx, b.handle)) }

// Multiply enqueues z = x y + beta z. z, which is not Transposed, overlaps neither x nor y.
func (b *BLAS) Multiply(z, x, y Matrix, beta float32) error {
	if err := b.s.d.CheckProduct(z, x, y); err != nil {
		return err
	}
	if z.Rows == 0 || z.Cols == 0 || x.Cols == 0 && beta == 1 {
		return nil
	}
	// cuBLAS counts by columns, where a matrix by rows is its transpose: zᵀ = yᵀ xᵀ.
	err := driver.Multiply(b.s.ctx, b.handle, z.Cols, z.Rows, x.Cols, y.operand(), x.operand(), beta, z.operand())
	return b.s.d.failed("product", err)
}

func (m Matrix) operand() driver.Operand {
	row, col := m.Strides()
	return driver.Operand{Addr: m.Elements.Addr(), Stride: max(row, col), Transposed: m.Transposed}
}

// CheckProduct returns an error unless x y has the shape of z and all three are in memory of d.
func (d *Device) CheckProduct(z, x, y Matrix) error {
	if x.Cols != y.Rows || z.Rows != x.Rows || z.Cols != y.Cols || z.Transposed {
		return d.failed("product", fmt.Errorf("of %v and %v to %v: want the inner lengths equal, and a result by rows", x, y, z))
	}
	for _, m := range []Matrix{z, x, y} {
		e := m.Elements
		if m.Rows < 0 || m.Cols < 0 || e.Len() != m.Rows*m.Cols ||
			e.Len() > 0 && (e.Type() != mem.F32 || e.Space() != d) {
			return d.failed("product", fmt.Errorf("%v in %d elements of %v in %s: want rows x columns of float32 in %s",
				m, e.Len(), e.Type(), e.Space().Name(), d.name))
		}
	}
	return nil
}

func (m Matrix) String() string {
	s := fmt.Sprintf("%d x %d", m.Rows, m.Cols)
	if m.Transposed {
		s += " transposed"
	}
	return s
}
