package nn

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"
)

// A Matrix is a dense matrix in row-major order, a row per sample.
type Matrix = blas32.General

// NewMatrix returns a matrix of zeros.
func NewMatrix(rows, cols int) Matrix { return View(make([]float32, rows*cols), rows, cols) }

// View returns data as a matrix of this shape.
func View(data []float32, rows, cols int) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: max(1, cols), Data: data}
}

// room returns a matrix of this shape in the memory of m, which is enlarged if necessary. Its
// content is undefined.
func room(m *Matrix, rows, cols int) Matrix {
	if len(m.Data) < rows*cols {
		*m = NewMatrix(rows, cols)
	}
	return View(m.Data[:rows*cols], rows, cols)
}

// row returns row i of m.
func row(m Matrix, i int) []float32 { return m.Data[i*m.Stride:][:m.Cols] }

// rows returns rows [lo, hi) of m.
func rows(m Matrix, lo, hi int) Matrix {
	m.Rows, m.Data = hi-lo, m.Data[lo*m.Stride:]
	return m
}

// columns returns columns [lo, hi) of m.
func columns(m Matrix, lo, hi int) Matrix {
	m.Cols, m.Data = hi-lo, m.Data[lo:]
	return m
}

// block returns the part of m of at most rows x cols elements that begins at row i, column j.
func block(m Matrix, i, j, rows, cols int) Matrix {
	rows, cols = min(rows, m.Rows-i), min(cols, m.Cols-j)
	return Matrix{Rows: rows, Cols: cols, Stride: m.Stride,
		Data: m.Data[i*m.Stride+j : (i+rows-1)*m.Stride+j+cols]}
}

// A product is cut into tiles for two reasons. Operands of a tile stay in the cache. And for a
// product with four or more blocks of 64 x 64 results, gonum would start a goroutine for every
// processor of the process, where one must stay free for communication. Tiles are smaller than
// that, and Workers is the number of goroutines that compute them.
//
// gonum works along the rows of a tile, with a call for each. So rows are as long as possible, and
// about equally long within a product.
const (
	tileRows  = 32
	tileCols  = 192 // at most
	tileInner = 128
)

// tileWidth returns the columns of a tile for a product with cols columns.
func tileWidth(cols int) int {
	tiles := (cols + tileCols - 1) / tileCols
	width := (cols + tiles - 1) / max(1, tiles)
	return (width + 15) / 16 * 16 // gonum takes 16 numbers at a time
}

// Workers is the number of goroutines that share a matrix product. The result does not depend on
// their number: each element is summed in the same order.
type Workers int

// WorkersOf returns the number of compute goroutines for each of a number of ranks. If there are
// other ranks, one processor of the process is left for communication.
func WorkersOf(ranks int) Workers {
	n := runtime.GOMAXPROCS(0)
	if ranks > 1 {
		n = max(1, n-1)
	}
	return Workers(n)
}

// each calls do(lo, hi) for ranges that partition [0, n), each of whole units except the last.
func (w Workers) each(n, unit int, do func(lo, hi int)) {
	units := (n + unit - 1) / unit
	workers := max(1, min(int(w), units))
	var wg sync.WaitGroup
	for i := 1; i < workers; i++ {
		wg.Go(func() { do(units*i/workers*unit, min(n, units*(i+1)/workers*unit)) })
	}
	do(0, min(n, units/workers*unit))
	wg.Wait()
}

// mul adds a b to c.
func (w Workers) mul(c, a, b Matrix) {
	w.each(c.Rows, tileRows, func(lo, hi int) { mul(rows(c, lo, hi), rows(a, lo, hi), b) })
}

// mul adds a b to c.
func mul(c, a, b Matrix) {
	width := tileWidth(c.Cols)
	for i := 0; i < c.Rows; i += tileRows {
		for k := 0; k < a.Cols; k += tileInner {
			for j := 0; j < c.Cols; j += width {
				blas32.Gemm(blas.NoTrans, blas.NoTrans,
					1, block(a, i, k, tileRows, tileInner), block(b, k, j, tileInner, width),
					1, block(c, i, j, tileRows, width))
			}
		}
	}
}

// mulTransA adds aᵀ b to c.
func (w Workers) mulTransA(c, a, b Matrix) {
	width := tileWidth(c.Cols)
	w.each(c.Rows, tileRows, func(lo, hi int) {
		for i := lo; i < hi; i += tileRows {
			for k := 0; k < a.Rows; k += tileInner {
				for j := 0; j < c.Cols; j += width {
					blas32.Gemm(blas.Trans, blas.NoTrans,
						1, block(a, k, i, tileInner, tileRows), block(b, k, j, tileInner, width),
						1, block(c, i, j, tileRows, width))
				}
			}
		}
	})
}

// mulTransB adds a bᵀ to c. Its inner loop is a dot product along rows, which are not cut, because
// shorter rows gain nothing.
func (w Workers) mulTransB(c, a, b Matrix) {
	w.each(c.Rows, tileRows, func(lo, hi int) {
		for i := lo; i < hi; i += tileRows {
			for j := 0; j < c.Cols; j += tileRows {
				blas32.Gemm(blas.NoTrans, blas.Trans,
					1, block(a, i, 0, tileRows, a.Cols), block(b, j, 0, tileRows, b.Cols),
					1, block(c, i, j, tileRows, tileRows))
			}
		}
	})
}

// addTimes adds a x to y. x may be longer. It is blas32.Axpy with less overhead.
func addTimes(y []float32, a float32, x []float32) {
	gonum.Implementation{}.Saxpy(len(y), a, x, 1, y, 1)
}

// nonZero returns the indexes of the nonzero numbers of x, in the memory of at.
func nonZero(at []int, x []float32) []int {
	n, at := 0, at[:len(x)]
	for i, v := range x {
		at[n] = i
		if v != 0 {
			n++ // needs no branch, which the processor would often mispredict
		}
	}
	return at[:n]
}
