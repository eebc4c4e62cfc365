package topology

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
)

// A Cart is a grid of ranks (MPI-4.1 section 8.5). They are numbered with the last dimension first:
// in a grid of 2 by 3, rank 4 is at 1, 1. The neighbors of a rank are those one place from it in
// each dimension.
type Cart struct {
	*Neighborhood
	dims     []int
	periodic []bool
}

// NewCart returns a grid of the first ranks of c, with dims[i] places in dimension i; if
// periodic[i] the last of them is the first's neighbor (MPI_Cart_create, without reorder). Ranks
// for which there is no place get nil. It is collective over c. See Dims for dimensions that are as
// even as can be.
func NewCart(ctx context.Context, c *comm.Comm, dims []int, periodic []bool) (*Cart, error) {
	places, err := placesOf(c, dims, periodic)
	if err != nil {
		return nil, err
	}
	color := 0
	if c.Rank() >= places {
		color = comm.Undefined
	}
	g := Cart{dims: slices.Clone(dims), periodic: slices.Clone(periodic)}
	d, err := c.Split(ctx, color, c.Rank())
	return g.over(ctx, d, err)
}

// placesOf returns how many places a grid of ranks of c has.
func placesOf(c *comm.Comm, dims []int, periodic []bool) (int, error) {
	const op = "newcart"
	if len(periodic) != len(dims) {
		return 0, wrong(c, op, "periodic has %d elements: want %d, one for each dimension", len(periodic), len(dims))
	}
	n := 1
	for i, d := range dims {
		switch {
		case d < 1:
			return 0, wrong(c, op, "dims[%d] is %d: want 1 or more", i, d)
		case d > c.Size()/n:
			return 0, wrong(c, op, "the grid %v has more places than %d: want at most one for each rank", dims, c.Size())
		}
		n *= d
	}
	return n, nil
}

// over returns g over d, which is nil where this rank is not in it.
func (g Cart) over(ctx context.Context, d *comm.Comm, err error) (*Cart, error) {
	if err != nil || d == nil {
		return nil, err
	}
	all := g.neighbors(d.Rank())
	n := Neighborhood{sources: all, destinations: all, isGrid: true}
	g.Neighborhood, err = n.over(ctx, d)
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// neighbors returns those of a rank, the one before it and the one behind it in each dimension.
func (g *Cart) neighbors(rank int) (all []int) {
	for dim := range g.dims {
		all = append(all, g.shifted(rank, dim, -1), g.shifted(rank, dim, 1))
	}
	return all
}

// Dims returns how many places there are in each dimension (MPI_Cart_get).
func (g *Cart) Dims() []int { return slices.Clone(g.dims) }

// Periodic returns in which dimensions the last place is the first's neighbor.
func (g *Cart) Periodic() []bool { return slices.Clone(g.periodic) }

// Coords returns where a rank of g is, nil if it is none (MPI_Cart_coords).
func (g *Cart) Coords(rank int) []int {
	at := make([]int, len(g.dims))
	rest := rank
	for i := len(at) - 1; i >= 0; i-- {
		at[i], rest = rest%g.dims[i], rest/g.dims[i]
	}
	if rank < 0 || rest > 0 {
		return nil
	}
	return at
}

// RankAt returns the rank at coords, comm.ProcNull outside the grid (MPI_Cart_rank). In a periodic
// dimension there is no outside: coordinates wrap. It panics unless there is a coordinate for each
// dimension.
func (g *Cart) RankAt(coords []int) int {
	if len(coords) != len(g.dims) {
		panic(fmt.Sprintf("topology: coordinates %v in the grid %v: want %d", coords, g.dims, len(g.dims)))
	}
	rank := 0
	for i, x := range coords {
		if g.periodic[i] {
			x = (x%g.dims[i] + g.dims[i]) % g.dims[i]
		}
		if x < 0 || x >= g.dims[i] {
			return comm.ProcNull
		}
		rank = rank*g.dims[i] + x
	}
	return rank
}

// Shift returns the rank that is by places back in a dimension and the one by places forward, each
// comm.ProcNull outside the grid: those that a Sendrecv receives from and sends to when all ranks
// hand something on (MPI_Cart_shift). It panics if there is no such dimension.
func (g *Cart) Shift(dim, by int) (from, to int) {
	return g.shifted(g.Rank(), dim, -by), g.shifted(g.Rank(), dim, by)
}

// shifted returns the rank by places from rank in a dimension.
func (g *Cart) shifted(rank, dim, by int) int {
	at := g.Coords(rank)
	at[dim] += by
	return g.RankAt(at)
}

// Sub returns the part of g that this rank is in if g is cut along the dimensions that are not to
// be kept: of a grid of rows and columns its row, if keep is false, true (MPI_Cart_sub). It is
// collective over g.
func (g *Cart) Sub(ctx context.Context, keep []bool) (*Cart, error) {
	if len(keep) != len(g.dims) {
		return nil, wrong(g.Comm, "sub", "keep has %d elements: want %d, one for each dimension", len(keep), len(g.dims))
	}
	sub, color := Cart{}, 0
	at := g.Coords(g.Rank())
	for i, kept := range keep {
		if kept {
			sub.dims, sub.periodic = append(sub.dims, g.dims[i]), append(sub.periodic, g.periodic[i])
		} else {
			color = color*g.dims[i] + at[i]
		}
	}
	d, err := g.Split(ctx, color, g.Rank())
	return sub.over(ctx, d, err)
}
