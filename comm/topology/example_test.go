package topology_test

import (
	"context"
	"fmt"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/topology"
)

// Four ranks around a ring hear of both neighbors. In a program started by gompirun c is what
// comm.Init returns.
func ExampleCart() {
	around := func(ctx context.Context, c *comm.Comm) error {
		ring, err := topology.NewCart(ctx, c, []int{c.Size()}, []bool{true})
		if err != nil {
			return err
		}
		defer ring.Close(ctx)
		beside := make([]int, 2) // a block for each neighbor
		if err := ring.NeighborAllgather(ctx, comm.Of([]int{10 * c.Rank()}), comm.Of(beside)); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("rank 0 is between those that sent", beside)
		}
		return nil
	}
	commtest.Ranks(context.Background(), 4, comm.Config{}, around)
	// Output: rank 0 is between those that sent [30 10]
}

func ExampleDims() {
	dims := []int{0, 0, 2} // a free, a free, and a fixed one
	if err := topology.Dims(24, dims); err != nil {
		fmt.Println(err)
	}
	fmt.Println(dims)
	// Output: [4 3 2]
}

// A row of a grid is a communicator, in which its ranks may do collectives.
func ExampleCart_Sub() {
	sums := func(ctx context.Context, c *comm.Comm) error {
		grid, err := topology.NewCart(ctx, c, []int{2, 3}, []bool{false, false})
		if err != nil {
			return err
		}
		defer grid.Close(ctx)
		row, err := grid.Sub(ctx, []bool{false, true})
		if err != nil {
			return err
		}
		defer row.Close(ctx)
		sum := []int{c.Rank()}
		if err := comm.Allreduce(ctx, row.Comm, sum, sum, comm.Sum); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println("the ranks beside rank 3, and it, are", sum[0])
		}
		return nil
	}
	commtest.Ranks(context.Background(), 6, comm.Config{}, sums)
	// Output: the ranks beside rank 3, and it, are 12
}
