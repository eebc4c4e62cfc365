package nn

import (
	"runtime"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A Matrix is a dense matrix in row-major order, a row per sample.
type Matrix = blas32.General

// NewMatrix returns a matrix of zeros.
func NewMatrix(rows, cols int) Matrix { return View(make([]float32, rows*cols), rows, cols) }

// View returns data as a matrix of that shape.
func View(data []float32, rows, cols int) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: max(1, cols), Data: data}
}

// room returns a matrix of that shape in the memory of m, which gets more if it has too little.
// What is in it is left over.
func room(m *Matrix, rows, cols int) Matrix {
	if len(m.Data) < rows*cols {
		*m = NewMatrix(rows, cols)
	}
	return View(m.Data[:rows*cols], rows, cols)
}

// top returns the first rows of m.
func top(m Matrix, rows int) Matrix {
	m.Rows, m.Data = rows, m.Data[:rows*m.Stride]
	return m
}

// block returns the part of m of at most rows x cols elements that begins at
// row i, column j.
func block(m Matrix, i, j, rows, cols int) Matrix {
	rows, cols = min(rows, m.Rows-i), min(cols, m.Cols-j)
	return Matrix{Rows: rows, Cols: cols, Stride: m.Stride,
		Data: m.Data[i*m.Stride+j : (i+rows-1)*m.Stride+j+cols]}
}

// A product is cut into tiles for two reasons. Operands of a tile stay in the
// cache. And a product with four or more blocks of 64 x 64 results would make
// gonum start a goroutine for every processor of the process, where one must
// stay free for communication: tiles are smaller than that, and Workers says
// how many goroutines work on them.
const (
	tileRows  = 64
	tileCols  = 128
	tileInner = 128
)

// Workers is how many goroutines share the work of one matrix product. The
// result does not depend on it: each element is summed in one order.
type Workers int

// WorkersOf returns how many goroutines a rank of as many computes with. One processor of the
// process is left for communication, unless there is nobody to communicate with.
func WorkersOf(ranks int) Workers {
	n := runtime.GOMAXPROCS(0)
	if ranks > 1 {
		n = max(1, n-1)
	}
	return Workers(n)
}

// each calls do(lo, hi) for ranges of whole tiles that make up [0, rows).
func (w Workers) each(rows int, do func(lo, hi int)) {
	tiles := (rows + tileRows - 1) / tileRows
	n := max(1, min(int(w), tiles))
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { do(tiles*i/n*tileRows, min(rows, tiles*(i+1)/n*tileRows)) })
	}
	do(0, min(rows, tiles/n*tileRows))
	wg.Wait()
}

// mul adds a b to c.
func (w Workers) mul(c, a, b Matrix) {
	w.each(c.Rows, func(lo, hi int) {
		for i := lo; i < hi; i += tileRows {
			for k := 0; k < a.Cols; k += tileInner {
				for j := 0; j < c.Cols; j += tileCols {
					blas32.Gemm(blas.NoTrans, blas.NoTrans,
						1, block(a, i, k, tileRows, tileInner), block(b, k, j, tileInner, tileCols),
						1, block(c, i, j, tileRows, tileCols))
				}
			}
		}
	})
}

// mulTransA adds aᵀ b to c.
func (w Workers) mulTransA(c, a, b Matrix) {
	w.each(c.Rows, func(lo, hi int) {
		for i := lo; i < hi; i += tileRows {
			for k := 0; k < a.Rows; k += tileInner {
				for j := 0; j < c.Cols; j += tileCols {
					blas32.Gemm(blas.Trans, blas.NoTrans,
						1, block(a, k, i, tileInner, tileRows), block(b, k, j, tileInner, tileCols),
						1, block(c, i, j, tileRows, tileCols))
				}
			}
		}
	})
}

// mulTransB adds a bᵀ to c. Its inner loop is a dot product, which gains
// nothing from cutting the rows it runs along.
func (w Workers) mulTransB(c, a, b Matrix) {
	w.each(c.Rows, func(lo, hi int) {
		for i := lo; i < hi; i += tileRows {
			for j := 0; j < c.Cols; j += tileRows {
				blas32.Gemm(blas.NoTrans, blas.Trans,
					1, block(a, i, 0, tileRows, a.Cols), block(b, j, 0, tileRows, b.Cols),
					1, block(c, i, j, tileRows, tileRows))
			}
		}
	})
}
