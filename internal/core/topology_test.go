package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/topology"
)

// A torus of two by three, in which both neighbors of the first dimension are one rank, over the
// transports of processes, short and long. Package topology has the other tests, in one process.
func TestNeighborCollectivesOverTCPAndMemory(t *testing.T) {
	for name, over := range map[string]func(t testing.TB, n int, fn rankFunc) []error{
		"tcp": overTCP, "memory": overMemory} {
		for _, n := range []int{3, 40_000} {
			err := errors.Join(over(t, 6, func(ctx context.Context, c *comm.Comm) error {
				g, err := topology.NewCart(ctx, c, []int{2, 3}, []bool{true, true})
				if err != nil {
					return err
				}
				return errors.Join(torus(ctx, g, n), g.Close(ctx))
			})...)
			if err != nil {
				t.Errorf("%s, %d elements: %v", name, n, err)
			}
		}
	}
}

// torus has each rank send a block of n elements to each neighbor.
func torus(ctx context.Context, g *topology.Cart, n int) error {
	row, column := g.Rank()/3, g.Rank()%3
	var send, recv, want []int
	for i := range 4 {
		send = append(send, slices.Repeat([]int{10*g.Rank() + i}, n)...)
	}
	for i, from := range []int{3*(1-row) + column, 3*(1-row) + column, 3*row + (column+2)%3, 3*row + (column+1)%3} {
		want = append(want, slices.Repeat([]int{10*from + []int{1, 0, 3, 2}[i]}, n)...)
	}
	for range 3 {
		recv = make([]int, 4*n)
		if err := g.NeighborAlltoall(ctx, comm.Of(send), comm.Of(recv)); err != nil || !slices.Equal(recv, want) {
			return fmt.Errorf("rank %d: %v, or other data than %v", g.Rank(), err, want[:4])
		}
	}
	return nil
}
