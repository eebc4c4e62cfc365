package compress

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// A matrix is a gradient that PowerSGD approximates. grad and errors are in rows of cols numbers. p
// and q are in rank columns.
type matrix struct {
	rows, cols, rank int
	errors           []float32
	q                []float32 // of the last step; its columns have length 1 from project to restore
	seed             uint64
	drawn            [1]uint64  // number of random columns of q so far: column n follows from seed and n
	source           *rand.PCG  // generator of the next random column
	random           *rand.Rand // of source

	// In the present step:
	grad []float32
	p    []float32
	next []float32 // the next q
}

// newMatrix returns a matrix with the same seed on all ranks.
func newMatrix(name string, rows, cols, rank int, errors []float32) *matrix {
	h := fnv.New64a()
	fmt.Fprint(h, name, rows, cols)
	m := &matrix{rows: rows, cols: cols, rank: rank, errors: errors, q: make([]float32, rank*cols),
		seed: h.Sum64(), source: &rand.PCG{}}
	m.random = rand.New(m.source)
	return m
}

// block is the number of rows read at a time: they stay in the first-level cache for all columns.
const block = 4

// project adds the errors to grad, and sets p to this rank's M*Q.
func (m *matrix) project() {
	for k := range m.rank {
		m.renew(m.column(m.q, k, m.cols))
	}
	for i := 0; i < m.rows; i += block {
		n := min(block, m.rows-i)
		rows := m.row(m.grad, i, n)
		addScaled(rows, m.row(m.errors, i, n), 1)
		for k := range m.rank {
			dots(m.column(m.p, k, m.rows)[i:][:n], rows, m.column(m.q, k, m.cols))
		}
	}
}

// renew scales a column of q to length 1, so that p is neither too large nor too small for float32.
// A column of zeros becomes random.
func (m *matrix) renew(col []float32) {
	length := norm(col)
	if length == 0 {
		m.source.Seed(m.seed, m.drawn[0])
		m.drawn[0]++
		for j := range col {
			col[j] = float32(m.random.NormFloat64())
		}
		length = norm(col)
	}
	scale(col, 1/length)
}

// projectBack makes the columns of the average p orthonormal, and sets next to this rank's Mᵀ*P.
func (m *matrix) projectBack() {
	orthonormalize(m.p, m.rows)
	clear(m.next)
	for i := 0; i < m.rows; i += block {
		n := min(block, m.rows-i)
		for k := range m.rank {
			addRows(m.column(m.next, k, m.cols), m.row(m.grad, i, n), m.column(m.p, k, m.rows)[i:], 1)
		}
	}
}

// restore sets grad to P*Qᵀ with the average q, and errors to its difference from M.
func (m *matrix) restore() {
	copy(m.q, m.next)
	for i := range m.rows {
		grad, errors := m.row(m.grad, i, 1), m.row(m.errors, i, 1)
		clear(errors)
		addRows(errors, m.q, m.p[i:], m.rows)
		for j, sent := range errors {
			grad[j], errors[j] = sent, grad[j]-sent
		}
	}
}

// row returns n rows from i on.
func (m *matrix) row(of []float32, i, n int) []float32 { return of[i*m.cols:][:n*m.cols] }

func (m *matrix) column(of []float32, k, n int) []float32 { return of[k*n:][:n] }
