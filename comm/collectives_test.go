package comm_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
)

// value is what rank r contributes at index i.
func value(r, i int) int64 { return int64(r*1000 + i*i%97 + 1) }

func vector(r, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = value(r, i)
	}
	return v
}

func sum(p, n int) []int64 {
	v := make([]int64, n)
	for r := range p {
		for i := range v {
			v[i] += value(r, i)
		}
	}
	return v
}

func equal[T comparable](what string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
	return nil
}

// Sizes on both sides of what travels without asking.
var lengths = []int{0, 1, 5, 1000, 40_000, 300_000}

func collectives(ctx context.Context, c *comm.Comm, n int) error {
	p, me := c.Size(), c.Rank()
	mine := vector(me, n)
	got := make([]int64, n)
	if err := comm.Allreduce(ctx, c, mine, got, comm.Sum); err != nil {
		return err
	}
	if err := equal("allreduce", got, sum(p, n)); err != nil {
		return err
	}
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	for root := range p {
		data := make([]int64, n)
		if me == root {
			copy(data, mine)
		}
		if err := comm.Bcast(ctx, c, root, data); err != nil {
			return err
		}
		if err := equal("bcast", data, vector(root, n)); err != nil {
			return err
		}
	}
	block := make([]int64, n)
	all := make([]int64, n*p)
	for r := range p {
		copy(all[r*n:], vector(me+r, n))
	}
	if err := comm.ReduceScatterBlock(ctx, c, all, block, comm.Sum); err != nil {
		return err
	}
	want := make([]int64, n)
	for r := range p {
		for i := range want {
			want[i] += value(r+me, i)
		}
	}
	if err := equal("reducescatterblock", block, want); err != nil {
		return err
	}
	if err := comm.Allgather(ctx, c, mine, all); err != nil {
		return err
	}
	for r := range p {
		if err := equal("allgather", all[r*n:(r+1)*n], vector(r, n)); err != nil {
			return err
		}
	}
	swapped := make([]int64, n*p)
	if err := comm.Alltoall(ctx, c, all, swapped); err != nil {
		return err
	}
	for r := range p {
		if err := equal("alltoall", swapped[r*n:(r+1)*n], vector(me, n)); err != nil {
			return err
		}
	}
	return nil
}

func TestCollectivesOnManyRanks(t *testing.T) {
	for _, p := range []int{1, 2, 3, 4, 7, 8} {
		for _, n := range lengths {
			if testing.Short() && n*p > 400_000 {
				continue
			}
			t.Run(fmt.Sprintf("%dx%d", p, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					commtest.Run(t, p, func(ctx context.Context, c *comm.Comm) error { return collectives(ctx, c, n) })
				})
			})
		}
	}
}
