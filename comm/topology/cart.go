package topology

import (
	"context"
	"slices"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// A Cart is a grid of ranks (MPI-4.1 section 8.5). They are numbered with the last dimension first:
// in a grid of 2 by 3, rank 4 is at 1, 1. The neighbors of a rank are those one place from it in
// each dimension.
type Cart struct {
	*Neighborhood
}

// grid returns g as programs have it, nil where it is nil.
func grid(g *topology.Neighborhood, err error) (*Cart, error) {
	n, err := over(g, err)
	if n == nil {
		return nil, err
	}
	return &Cart{n}, nil
}

// NewCart returns a grid of the first ranks of c, with dims[i] places in dimension i; if
// periodic[i] the last of them is the first's neighbor (MPI_Cart_create, without reorder). Ranks
// for which there is no place get nil. It is collective over c. See Dims for dimensions that are as
// even as can be.
func NewCart(ctx context.Context, c *comm.Comm, dims []int, periodic []bool) (*Cart, error) {
	return grid(topology.NewCart(ctx, (*core.Comm)(c), dims, periodic))
}

// Dims fills in the dimensions that are 0, so that a grid of dims has n places: as equal ones as
// can be, the first the longest (MPI_Dims_create). The others stay as they are, and have to divide
// n. For 12 ranks, 0 and 0 become 4 and 3; 0, 2 and 0 become 3, 2 and 2.
func Dims(n int, dims []int) error { return topology.Dims(n, dims) }

// Dims returns how many places there are in each dimension (MPI_Cart_get).
func (g *Cart) Dims() []int { return slices.Clone(g.in.Grid.Dims) }

// Periodic returns in which dimensions the last place is the first's neighbor.
func (g *Cart) Periodic() []bool { return slices.Clone(g.in.Grid.Periodic) }

// Coords returns where a rank of g is, nil if it is none (MPI_Cart_coords).
func (g *Cart) Coords(rank int) []int { return g.in.Grid.Coords(rank) }

// RankAt returns the rank at coords, comm.ProcNull outside the grid (MPI_Cart_rank). In a periodic
// dimension there is no outside: coordinates wrap. It panics unless there is a coordinate for each
// dimension.
func (g *Cart) RankAt(coords []int) int { return g.in.Grid.RankAt(coords) }

// Shift returns the rank that is by places back in a dimension and the one by places forward, each
// comm.ProcNull outside the grid: those that a Sendrecv receives from and sends to when all ranks
// hand something on (MPI_Cart_shift). It panics if there is no such dimension.
func (g *Cart) Shift(dim, by int) (from, to int) {
	return g.in.Grid.Shifted(g.Rank(), dim, -by), g.in.Grid.Shifted(g.Rank(), dim, by)
}

// Sub returns the part of g that this rank is in if g is cut along the dimensions that are not to
// be kept: of a grid of rows and columns its row, if keep is false, true (MPI_Cart_sub). It is
// collective over g.
func (g *Cart) Sub(ctx context.Context, keep []bool) (*Cart, error) {
	return grid(g.in.Sub(ctx, keep))
}
