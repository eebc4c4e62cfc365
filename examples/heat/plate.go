package main

import (
	"context"
	"errors"
	"math"

	"gompi/comm"
	"gompi/comm/topology"
)

// A block is a rank's part of the plate: rows x cols points in a frame that is one point wide. The
// frame has the points around it, those of other blocks (the halo) or the edges of the plate. Row 0
// and column 0 are the frame's.
type block struct {
	top, left  int // where the first point is in the plate
	rows, cols int
	u, next    []float64 // temperatures, row after row: those of now, and room for those after the step
}

// blockOf returns the block of the rank at a place of a grid of ranks.
func blockOf(at, dims []int, f *flags) *block {
	top, left := f.rows*at[0]/dims[0], f.cols*at[1]/dims[1]
	return newBlock(top, left, f.rows*(at[0]+1)/dims[0]-top, f.cols*(at[1]+1)/dims[1]-left, f)
}

func newBlock(top, left, rows, cols int, f *flags) *block {
	b := &block{top: top, left: left, rows: rows, cols: cols}
	for r := range rows + 2 {
		for c := range cols + 2 {
			b.u = append(b.u, atFirst(top+r-1, left+c-1, f))
		}
	}
	b.next = append(b.next, b.u...) // the edges of the plate stay as they are
	return b
}

// atFirst returns the temperature of a point at first, from 0 to 1. Those outside are the edges.
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

// step computes the next temperatures. The points inside need no halo: they are computed while that
// is under way.
func (b *block) step(ctx context.Context, grid *topology.Cart) error {
	halo, err := b.exchange(grid)
	if err != nil {
		return err
	}
	b.relax(2, b.rows, 2, b.cols)
	if err := comm.WaitAll(ctx, halo...); err != nil {
		return err
	}
	b.relax(1, 2, 1, b.cols+1) // the outermost rows and columns; of a narrow block some twice
	b.relax(b.rows, b.rows+1, 1, b.cols+1)
	b.relax(2, b.rows, 1, 2)
	b.relax(2, b.rows, b.cols, b.cols+1)
	b.u, b.next = b.next, b.u
	return nil
}

// exchange starts to send the outermost points to the blocks above, below, left and right, and to
// receive theirs. Beyond the edge of the plate there is comm.ProcNull, from which nothing comes:
// what was in the frame stays.
func (b *block) exchange(grid *topology.Cart) ([]comm.Request, error) {
	left, e1 := b.column(1)
	right, e2 := b.column(b.cols)
	beforeLeft, e3 := b.column(0)
	afterRight, e4 := b.column(b.cols + 1)
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return nil, err
	}
	return grid.IneighborAlltoallw(
		[]comm.Buffer{comm.Of(b.row(1)), comm.Of(b.row(b.rows)), left, right},
		[]comm.Buffer{comm.Of(b.row(0)), comm.Of(b.row(b.rows + 1)), beforeLeft, afterRight})
}

// row returns row r without the frame's columns.
func (b *block) row(r int) []float64 { return b.u[r*(b.cols+2)+1:][:b.cols] }

// column returns column c without the frame's rows: one point of each row.
func (b *block) column(c int) (comm.Buffer, error) {
	points, err := comm.Vector(b.rows, 1, b.cols+2)
	if err != nil {
		return comm.Buffer{}, err
	}
	return comm.Lay(b.u[b.cols+2+c:], points)
}

// spread is how much of the difference to its neighbors a point takes on in a step. Above 1/4
// errors would grow.
const spread = 0.2

// relax computes the next temperatures of the rows from top to before end, and of their columns
// from left to before right.
func (b *block) relax(top, end, left, right int) {
	width, n := b.cols+2, max(right-left, 0)
	for at := top*width + left; at < end*width; at += width {
		// All as long as next, so that the compiler leaves out the checks of indices.
		next, here := b.next[at:][:n], b.u[at:][:n]
		above, below, before, after := b.u[at-width:][:n], b.u[at+width:][:n], b.u[at-1:][:n], b.u[at+1:][:n]
		for c := range next {
			next[c] = here[c] + spread*(above[c]+below[c]+before[c]+after[c]-4*here[c])
		}
	}
}

// residual returns by how much the last step has changed a point at most.
func (b *block) residual() (most float64) {
	for i, x := range b.u {
		most = max(most, math.Abs(x-b.next[i]))
	}
	return most
}
