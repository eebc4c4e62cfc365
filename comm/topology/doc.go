// Package topology says which ranks of a communicator are neighbors, and lets neighbors exchange
// data: grids (Cart) and graphs (NewGraph), as MPI-4.1 chapter 8 has them.
//
// A halo exchange sends the edges of a block to the blocks beside it and receives theirs:
//
//	dims := make([]int, 2)
//	if err := topology.Dims(c.Size(), dims); err != nil { ... }
//	grid, err := topology.NewCart(ctx, c, dims, []bool{false, true})
//	...
//	err = grid.NeighborAlltoallw(ctx, edges, halos) // a Buffer for each neighbor
//
// A rank at the edge of a grid has comm.ProcNull for a neighbor. Messages with it are complete at
// once, so the edge needs no case of its own. examples/heat is a program with a halo exchange.
//
// Ranks keep the order that they have in the communicator. gompirun -map-by says which of them
// share a host.
package topology
