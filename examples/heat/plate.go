package main

import (
	"context"
	"errors"
	"math"

	"gompi/comm"
	"gompi/comm/topology"
)

// A block is a rank's part of the plate: rows x cols points in a frame that is one point wide. The
// frame has the points around them, from other blocks (the halo) or the edges of the plate. Row 0
// and column 0 are the frame's.
type block struct {
	top, left  int // place of the first point in the plate
	rows, cols int
	u, next    []float64 // present temperatures, row after row, and room for the next ones

	halo, nextHalo *topology.Persistent // of u and next
}

// blockOf returns the block of the rank at a place in a grid of ranks.
func blockOf(at, dims []int, f *flags) *block {
	top, left := f.rows*at[0]/dims[0], f.cols*at[1]/dims[1]
	return newBlock(top, left, f.rows*(at[0]+1)/dims[0]-top, f.cols*(at[1]+1)/dims[1]-left, f)
}

// connect creates the exchanges with the neighbouring blocks in grid.
func (b *block) connect(grid *topology.Cart) error {
	var e1, e2 error
	b.halo, e1 = b.haloOf(grid, b.u)
	b.nextHalo, e2 = b.haloOf(grid, b.next)
	return errors.Join(e1, e2)
}

// haloOf returns the exchange of u's halo with the blocks above, below, left and right, for any
// number of steps. It sends the outermost points of the block and receives the neighbours' into the
// frame.
func (b *block) haloOf(grid *topology.Cart, u []float64) (*topology.Persistent, error) {
	width := b.cols + 2
	points, err := comm.Vector(b.rows, 1, width)
	if err != nil {
		return nil, err
	}
	row := func(r int) comm.Buffer { return comm.Of(u[r*width+1:][:b.cols]) }
	column := func(c int) comm.Buffer { // without the frame's rows: one point of each other row
		laid, e := comm.Lay(u[width+c:], points)
		err = errors.Join(err, e)
		return laid
	}
	out := []comm.Buffer{row(1), row(b.rows), column(1), column(b.cols)}
	in := []comm.Buffer{row(0), row(b.rows + 1), column(0), column(b.cols + 1)}
	if err != nil {
		return nil, err
	}
	return grid.NeighborAlltoallwInit(out, in)
}

func newBlock(top, left, rows, cols int, f *flags) *block {
	b := &block{top: top, left: left, rows: rows, cols: cols}
	for r := range rows + 2 {
		for c := range cols + 2 {
			b.u = append(b.u, atFirst(top+r-1, left+c-1, f))
		}
	}
	b.next = append(b.next, b.u...) // the edges of the plate are constant
	return b
}

// atFirst returns the first temperature of a point, from 0 to 1. Points outside are the edges.
func atFirst(row, col int, f *flags) float64 {
	switch y, x := float64(row)/float64(f.rows), float64(col)/float64(f.rows); {
	case row < 0:
		return 1
	case row >= f.rows || col < 0 || col >= f.cols:
		return 0
	case math.Hypot(y-0.6, x-0.4) < 0.2 || math.Hypot(y-0.75, x-0.9) < 0.1:
		return 1
	}
	return 0
}

// step computes the next temperatures. The inner points need no halo: they are computed while the
// halo is under way. Beyond the edge of the plate is comm.ProcNull, which sends nothing, so the
// frame stays unchanged there.
func (b *block) step(ctx context.Context) error {
	exchange := b.halo.Start()
	b.relax(2, b.rows, 2, b.cols)
	if err := comm.WaitAll(ctx, exchange...); err != nil {
		return err
	}
	b.relax(1, 2, 1, b.cols+1) // the outermost rows and columns; of a narrow block some twice
	b.relax(b.rows, b.rows+1, 1, b.cols+1)
	b.relax(2, b.rows, 1, 2)
	b.relax(2, b.rows, b.cols, b.cols+1)
	b.swap()
	return nil
}

// swap makes the next temperatures the present ones.
func (b *block) swap() {
	b.u, b.next = b.next, b.u
	b.halo, b.nextHalo = b.nextHalo, b.halo
}

// row returns row r without the frame's columns.
func (b *block) row(r int) []float64 { return b.u[r*(b.cols+2)+1:][:b.cols] }

// relax computes the next temperatures of the rows from top to before end, and of their columns
// from left to before right. A point becomes the mean of itself and its four neighbours.
func (b *block) relax(top, end, left, right int) {
	width, n := b.cols+2, max(right-left, 0)
	for at := top*width + left; at < end*width; at += width {
		// All are as long as next, so that the compiler omits the checks of indices. A row's points
		// are loaded once: each is left of the next, and right of the last.
		next, above, below, row := b.next[at:][:n], b.u[at-width:][:n], b.u[at+width:][:n], b.u[at+1:][:n]
		before, here := b.u[at-1], b.u[at]
		for c, after := range row {
			next[c] = (above[c] + below[c] + before + here + after) * (1. / 5)
			before, here = here, after
		}
	}
}

// residual returns the largest change of a point in the last step.
func (b *block) residual() (most float64) {
	for i, x := range b.u {
		most = max(most, math.Abs(x-b.next[i]))
	}
	return most
}
