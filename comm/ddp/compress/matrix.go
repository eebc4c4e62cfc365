package compress

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// A matrix is a gradient that PowerSGD approximates. grad and errors have rows of cols numbers, one
// after the other. p and q have rank columns, one after the other.
type matrix struct {
	rows, cols, rank int
	errors           []float32
	q                []float32 // of the last step; its columns are of length 1 from project to restore
	random           *rand.Rand

	// In the step that is under way:
	grad []float32
	p    []float32
	next []float32 // what q becomes
}

// newMatrix returns one that is the same on all ranks.
func newMatrix(name string, rows, cols, rank int, errors []float32) *matrix {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &matrix{rows: rows, cols: cols, rank: rank, errors: errors, q: make([]float32, rank*cols),
		random: rand.New(rand.NewPCG(h.Sum64(), uint64(rows)<<32|uint64(cols)))}
}

// project adds the errors to grad, and makes p this rank's M*Q.
func (m *matrix) project() {
	for k := range m.rank {
		m.renew(m.column(m.q, k, m.cols))
	}
	for i := range m.rows {
		row := m.row(m.grad, i)
		add(row, m.row(m.errors, i))
		for k := range m.rank {
			m.p[k*m.rows+i] = dot(row, m.column(m.q, k, m.cols))
		}
	}
}

// renew scales a column of q to length 1, so that p is neither too large nor too small for float32.
// It makes one of zeros random.
func (m *matrix) renew(col []float32) {
	length := norm(col)
	if length == 0 {
		for j := range col {
			col[j] = float32(m.random.NormFloat64())
		}
		length = norm(col)
	}
	scale(col, 1/length)
}

// projectBack makes the columns of the average p orthonormal, and next this rank's Mᵀ*P.
func (m *matrix) projectBack() {
	orthonormalize(m.p, m.rows)
	clear(m.next)
	for i := range m.rows {
		row := m.row(m.grad, i)
		for k := range m.rank {
			addScaled(m.column(m.next, k, m.cols), row, m.p[k*m.rows+i])
		}
	}
}

// restore makes grad P*Qᵀ with the average q, and remembers what that lacks of M.
func (m *matrix) restore() {
	copy(m.q, m.next)
	for i := range m.rows {
		grad, errors := m.row(m.grad, i), m.row(m.errors, i)
		clear(errors)
		for k := range m.rank {
			addScaled(errors, m.column(m.q, k, m.cols), m.p[k*m.rows+i])
		}
		for j, sent := range errors {
			grad[j], errors[j] = sent, grad[j]-sent
		}
	}
}

func (m *matrix) row(of []float32, i int) []float32 { return of[i*m.cols:][:m.cols] }

func (m *matrix) column(of []float32, k, n int) []float32 { return of[k*n:][:n] }

// negligible is what a column must keep of its length, beside those before it, to count: less
// is mostly rounding errors of float32.
const negligible = 1e-5

// orthonormalize makes the columns of p, of n numbers, orthogonal to each other and of length 1, one
// after the other (modified Gram-Schmidt), each twice, since the first time leaves rounding
// errors. It makes those zero that depend on columns before them.
func orthonormalize(p []float32, n int) {
	for k := 0; k < len(p); k += n {
		col := p[k:][:n]
		before := norm(col)
		for range 2 {
			for i := 0; i < k; i += n {
				addScaled(col, p[i:][:n], -float32(dot64(col, p[i:][:n])))
			}
		}
		if after := norm(col); after > negligible*before {
			scale(col, 1/after)
		} else {
			clear(col)
		}
	}
}

// norm returns the length of x.
func norm(x []float32) float64 { return math.Sqrt(dot64(x, x)) }

func dot64(a, b []float32) float64 {
	b = b[:len(a)]
	var s float64
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}

// dot adds up four sums side by side, so that no addition waits for the one before it.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += v * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// add adds x to dst.
func add(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

// addScaled adds by*x to dst.
func addScaled(dst, x []float32, by float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += by * x[i]
	}
}

// scale multiplies x by a number.
func scale(x []float32, by float64) {
	for i, v := range x {
		x[i] = float32(float64(v) * by)
	}
}
