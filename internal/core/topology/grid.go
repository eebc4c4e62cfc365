package topology

import (
	"context"
	"fmt"
	"slices"

	"gompi/internal/core"
)

// A Grid is an immutable arrangement of ranks in a grid, numbered with the last dimension first.
type Grid struct {
	Dims     []int
	Periodic []bool // the last place is the first's neighbor
}

// NewCart returns a grid of the first ranks of c, nil on ranks without a place. NewCart is
// collective over c.
func NewCart(ctx context.Context, c *core.Comm, dims []int, periodic []bool) (*Neighborhood, error) {
	places, err := placesOf(c, dims, periodic)
	if err != nil {
		return nil, err
	}
	color := 0
	if c.Rank() >= places {
		color = core.Undefined
	}
	g := &Grid{slices.Clone(dims), slices.Clone(periodic)}
	d, err := c.Split(ctx, color, c.Rank())
	return g.over(ctx, d, err)
}

// placesOf returns the number of places in a grid of ranks of c.
func placesOf(c *core.Comm, dims []int, periodic []bool) (int, error) {
	const op = "newcart"
	if len(periodic) != len(dims) {
		return 0, Wrong(c, op, "periodic has %d elements: want %d, one for each dimension", len(periodic), len(dims))
	}
	n := 1
	for i, d := range dims {
		switch {
		case d < 1:
			return 0, Wrong(c, op, "dims[%d] is %d: want 1 or more", i, d)
		case d > c.Size()/n:
			return 0, Wrong(c, op, "the grid %v has more places than %d: want at most one for each rank",
				dims, c.Size())
		}
		n *= d
	}
	return n, nil
}

// over returns g over d, nil on ranks outside d.
func (g *Grid) over(ctx context.Context, d *core.Comm, err error) (*Neighborhood, error) {
	if err != nil || d == nil {
		return nil, err
	}
	var all []int // the previous and the next rank in each dimension
	for dim := range g.Dims {
		all = append(all, g.Shifted(d.Rank(), dim, -1), g.Shifted(d.Rank(), dim, 1))
	}
	return Neighborhood{Sources: all, Destinations: all, Grid: g}.over(ctx, d)
}

// Coords returns the coordinates of a rank, nil outside the grid.
func (g *Grid) Coords(rank int) []int {
	at := make([]int, len(g.Dims))
	rest := rank
	for i := len(at) - 1; i >= 0; i-- {
		at[i], rest = rest%g.Dims[i], rest/g.Dims[i]
	}
	if rank < 0 || rest > 0 {
		return nil
	}
	return at
}

// RankAt returns the rank at coords, core.ProcNull outside the grid. In a periodic dimension
// coordinates wrap. RankAt panics unless there is a coordinate for each dimension.
func (g *Grid) RankAt(coords []int) int {
	if len(coords) != len(g.Dims) {
		panic(fmt.Sprintf("topology: coordinates %v in the grid %v: want %d", coords, g.Dims, len(g.Dims)))
	}
	rank := 0
	for i, x := range coords {
		if g.Periodic[i] {
			x = (x%g.Dims[i] + g.Dims[i]) % g.Dims[i]
		}
		if x < 0 || x >= g.Dims[i] {
			return core.ProcNull
		}
		rank = rank*g.Dims[i] + x
	}
	return rank
}

// Shifted returns the rank by places from rank in a dimension, core.ProcNull outside the grid.
// Shifted panics if there is no such dimension.
func (g *Grid) Shifted(rank, dim, by int) int {
	at := g.Coords(rank)
	at[dim] += by
	return g.RankAt(at)
}

// Sub returns this rank's part of the grid n, cut along the dimensions that are not kept. Sub is
// collective over n.
func (n *Neighborhood) Sub(ctx context.Context, keep []bool) (*Neighborhood, error) {
	g, c := n.Grid, n.Comm
	if len(keep) != len(g.Dims) {
		return nil, Wrong(c, "sub", "keep has %d elements: want %d, one for each dimension", len(keep), len(g.Dims))
	}
	sub, color := &Grid{}, 0
	at := g.Coords(c.Rank())
	for i, kept := range keep {
		if kept {
			sub.Dims, sub.Periodic = append(sub.Dims, g.Dims[i]), append(sub.Periodic, g.Periodic[i])
		} else {
			color = color*g.Dims[i] + at[i]
		}
	}
	d, err := c.Split(ctx, color, c.Rank())
	return sub.over(ctx, d, err)
}
