package topology

import (
	"context"
	"slices"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// A Cart is a grid of ranks (MPI-4.1 section 8.5). Ranks are numbered with the last dimension
// first: in a grid of 2 by 3, rank 4 is at 1, 1. The neighbors of a rank are at distance one in
// each dimension.
type Cart struct {
	*Neighborhood
}

// grid returns g as a public Cart, nil for nil.
func grid(g *topology.Neighborhood, err error) (*Cart, error) {
	n, err := over(g, err)
	if n == nil {
		return nil, err
	}
	return &Cart{n}, nil
}

// NewCart returns a grid of the first ranks of c, with dims[i] places in dimension i. If
// periodic[i] is true, the last place is the first's neighbor (MPI_Cart_create, without reorder).
// Ranks without a place get nil. NewCart is collective over c. Dims computes nearly equal
// dimensions.
func NewCart(ctx context.Context, c *comm.Comm, dims []int, periodic []bool) (*Cart, error) {
	return grid(topology.NewCart(ctx, (*core.Comm)(c), dims, periodic))
}

// Dims fills in the dimensions that are 0, so that a grid of dims has n places: as equal as
// possible, in descending order (MPI_Dims_create). Other dimensions stay unchanged, and have to
// divide n. For 12 ranks, 0 and 0 become 4 and 3; 0, 2 and 0 become 3, 2 and 2.
func Dims(n int, dims []int) error { return topology.Dims(n, dims) }

// Dims returns the number of places in each dimension (MPI_Cart_get).
func (g *Cart) Dims() []int { return slices.Clone(g.in.Grid.Dims) }

// Periodic reports, for each dimension, whether the last place is the first's neighbor.
func (g *Cart) Periodic() []bool { return slices.Clone(g.in.Grid.Periodic) }

// Coords returns the place of a rank of g, nil for other ranks (MPI_Cart_coords).
func (g *Cart) Coords(rank int) []int { return g.in.Grid.Coords(rank) }

// RankAt returns the rank at coords, or comm.ProcNull outside the grid (MPI_Cart_rank). In a
// periodic dimension coordinates wrap. RankAt panics unless there is a coordinate for each
// dimension.
func (g *Cart) RankAt(coords []int) int { return g.in.Grid.RankAt(coords) }

// Shift returns the rank by places back in a dimension and the rank by places forward, each
// comm.ProcNull outside the grid (MPI_Cart_shift). When all ranks shift data, a Sendrecv receives
// from the first and sends to the second. Shift panics if the dimension does not exist.
func (g *Cart) Shift(dim, by int) (from, to int) {
	return g.in.Grid.Shifted(g.Rank(), dim, -by), g.in.Grid.Shifted(g.Rank(), dim, by)
}

// Sub cuts g along the dimensions that are not kept, and returns the part with this rank
// (MPI_Cart_sub). In a grid of rows and columns, with keep false, true, that is the rank's row. Sub
// is collective over g.
func (g *Cart) Sub(ctx context.Context, keep []bool) (*Cart, error) {
	return grid(g.in.Sub(ctx, keep))
}
