// Package topology defines neighbors among the ranks of a communicator, and lets neighbors exchange
// data: grids (Cart) and graphs (NewGraph), as in MPI-4.1 chapter 8.
//
// A halo exchange sends the edges of a block to the neighboring blocks and receives theirs:
//
//	dims := make([]int, 2)
//	if err := topology.Dims(c.Size(), dims); err != nil { ... }
//	grid, err := topology.NewCart(ctx, c, dims, []bool{false, true})
//	...
//	err = grid.NeighborAlltoallw(ctx, edges, halos) // a Buffer for each neighbor
//
// A rank at the edge of a grid has comm.ProcNull for a neighbor. Messages with ProcNull are
// complete at once, so the edge needs no code of its own. examples/heat is a program with a halo
// exchange.
//
// Ranks keep their order in the communicator. gompirun -map-by decides which of them share a host.
package topology
