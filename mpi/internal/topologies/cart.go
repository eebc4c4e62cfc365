package topologies

import (
	"gompi/internal/core"
	"gompi/internal/core/topology"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

// gridOf returns the dimensions of a grid, and which of them are periodic.
func gridOf(ndims int, dims, periods abi.Array) (lengths []int, periodic []bool, err error) {
	if ndims < 0 {
		return nil, nil, errs.New(errs.Dims, "ndims is %d: want 0 or more", ndims)
	}
	if ndims > 0 && dims == 0 {
		return nil, nil, errs.New(errs.Dims, "the dimensions are NULL: want %d", ndims)
	}
	lengths, periodic = dims.List(ndims), make([]bool, ndims)
	for i, x := range periods.Ints(ndims) {
		periodic[i] = x != 0
	}
	for i, d := range lengths {
		if d < 1 {
			return nil, nil, errs.New(errs.Dims, "dimension %d is %d: want 1 or more", i, d)
		}
	}
	return lengths, periodic, nil
}

// placesOf returns the number of places of a grid, or an error if the grid has more than most.
func placesOf(dims []int, most int) (int, error) {
	n := 1
	for _, d := range dims {
		if d > most/n {
			return 0, errs.New(errs.Dims, "the grid %v has more than %d places: want at most one for each rank",
				dims, most)
		}
		n *= d
	}
	return n, nil
}

func CartCreate(c *comms.Comm, ndims int, dims, periods abi.Array, reorder bool) (*comms.Comm, error) {
	lengths, periodic, err := gridOf(ndims, dims, periods)
	if err != nil {
		return nil, err
	}
	if _, err := placesOf(lengths, c.P2P.Size()); err != nil {
		return nil, err
	}
	g, err := topology.NewCart(comms.In("MPI_Cart_create"), c.P2P, lengths, periodic)
	return c.With(comms.Topology{Kind: abi.CartTopology, Neighborhood: g}, err)
}

func CartSub(c *comms.Comm, remain abi.Array) (*comms.Comm, error) {
	keep := make([]bool, len(c.Topology.Grid.Dims))
	for i, x := range remain.Ints(len(keep)) {
		keep[i] = x != 0
	}
	g, err := c.Topology.Sub(comms.In("MPI_Cart_sub"), keep)
	return c.With(comms.Topology{Kind: abi.CartTopology, Neighborhood: g}, err)
}

func CartdimGet(c *comms.Comm) (int, error) {
	return len(c.Topology.Grid.Dims), nil
}

func CartGet(c *comms.Comm, most int, dims, periods, coords abi.Array) error {
	if n := len(c.Topology.Grid.Dims); most < n {
		return errs.New(errs.Arg, "maxdims is %d: want %d or more", most, n)
	}
	dims.Store(most, c.Topology.Grid.Dims)
	coords.Store(most, c.Topology.Grid.Coords(c.Rank()))
	wraps := make([]int, len(c.Topology.Grid.Periodic))
	for i, p := range c.Topology.Grid.Periodic {
		if p {
			wraps[i] = 1
		}
	}
	periods.Store(most, wraps)
	return nil
}

func CartCoords(c *comms.Comm, rank, most int, coords abi.Array) error {
	at := c.Topology.Grid.Coords(rank)
	switch {
	case at == nil:
		return errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, c.P2P.Size()-1)
	case most < len(at):
		return errs.New(errs.Arg, "maxdims is %d: want %d or more", most, len(at))
	}
	coords.Store(most, at)
	return nil
}

func CartRank(c *comms.Comm, coords abi.Array) (int, error) {
	at := coords.List(len(c.Topology.Grid.Dims))
	r := c.Topology.Grid.RankAt(at)
	if r == core.ProcNull {
		return 0, errs.New(errs.Arg, "%v is outside the grid %v", at, c.Topology.Grid.Dims)
	}
	return r, nil
}

func CartShift(c *comms.Comm, dim, by int) (source, destination int, err error) {
	if n := len(c.Topology.Grid.Dims); dim < 0 || dim >= n {
		return 0, 0, errs.New(errs.Dims, "dimension %d is not from 0 to %d", dim, n-1)
	}
	return neighborOf(c.Topology.Grid.Shifted(c.Rank(), dim, -by)), neighborOf(c.Topology.Grid.Shifted(c.Rank(), dim, by)), nil
}

// neighborOf returns MPI's number of a rank of a grid.
func neighborOf(rank int) int {
	if rank == core.ProcNull {
		return abi.ProcNull
	}
	return rank
}

func CartMap(c *comms.Comm, ndims int, dims, periods abi.Array) (int, error) {
	lengths, _, err := gridOf(ndims, dims, periods)
	if err != nil {
		return 0, err
	}
	n, err := placesOf(lengths, c.Peers())
	if err != nil {
		return 0, err
	}
	return mapFirst(c, n)
}

func DimsCreate(nnodes, ndims int, dims abi.Array) error {
	if nnodes < 1 {
		return errs.New(errs.Arg, "nnodes is %d: want 1 or more", nnodes)
	}
	if ndims > 0 && dims == 0 {
		return errs.New(errs.Dims, "the dimensions are NULL")
	}
	if ndims <= 0 {
		return nil
	}
	all := dims.List(ndims)
	if err := topology.Dims(nnodes, all); err != nil {
		return errs.New(errs.Dims, "%v", err)
	}
	dims.Store(ndims, all)
	return nil
}
