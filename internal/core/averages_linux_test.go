package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
)

// Averages of 16-bit floats are divided before they are rounded, wherever the operands
// meet in memory.

// averaged averages vectors of a number for each rank by every collective that can, and
// compares the results with those of one rounding.
func averaged[T comm.Float16 | comm.BFloat16](ctx context.Context, c *comm.Comm, round func(float32) T,
	numbers []float32, send, recv []T) error {
	p, n := c.Size(), len(recv)
	of := func(ranks int) T {
		sum := float32(0)
		for _, x := range numbers[:ranks] {
			sum += x
		}
		return round(sum / float32(ranks))
	}
	for _, a := range []struct {
		kind    string
		call    func() error
		want    T
		nowhere bool
	}{
		{"allreduce", func() error { return comm.Allreduce(ctx, c, send[:n], recv, comm.Avg) }, of(p), false},
		{"reduce", func() error { return comm.Reduce(ctx, c, p-1, send[:n], recv, comm.Avg) }, of(p), c.Rank() != p-1},
		{"reducescatter", func() error { return comm.ReduceScatterBlock(ctx, c, send, recv, comm.Avg) }, of(p), false},
		{"scan", func() error { return comm.Scan(ctx, c, send[:n], recv, comm.Avg) }, of(c.Rank() + 1), false},
	} {
		for i := range send {
			send[i] = round(numbers[c.Rank()])
		}
		if err := a.call(); err != nil {
			return err
		}
		for i, got := range recv {
			if got != a.want && !a.nowhere {
				return fmt.Errorf("%s of %d ranks' %v: element %d of %d is %v, want %v", a.kind, p, numbers[:p], i, n,
					got, a.want)
			}
		}
	}
	return nil
}

// averagedIn is averaged in private memory, and in such that all ranks see.
func averagedIn[T comm.Float16 | comm.BFloat16](ctx context.Context, c *comm.Comm, round func(float32) T,
	numbers []float32, n int) error {
	err := averaged(ctx, c, round, numbers, make([]T, c.Size()*n), make([]T, n))
	if err != nil {
		return fmt.Errorf("private memory: %w", err)
	}
	v, err := comm.Alloc[T](ctx, c, (c.Size()+1)*n)
	if err != nil {
		return err
	}
	if err := averaged(ctx, c, round, numbers, v[n:], v[:n]); err != nil {
		return fmt.Errorf("memory from Alloc: %w", err)
	}
	return comm.Free(ctx, c, v)
}

func TestAveragesOf16BitFloatsAreRoundedOnce(t *testing.T) {
	for _, p := range []int{2, 3, 4, 5} {
		for _, n := range []int{5, 3000, 70_000} {
			err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
				return errors.Join(
					// bfloat16 has no 261, the sum of three and of five: a third of what it
					// would be rounded to is 86.5 and not 87, a fifth 52 and not 52.25.
					averagedIn(ctx, c, comm.ToBFloat16, []float32{256, 4, 1, 0, 0}, n),
					// The sums exceed 65504, float16's largest number.
					averagedIn(ctx, c, comm.ToFloat16, []float32{60_000, 60_000, 60_000, 60_000, 60_000}, n),
				)
			})...)
			if err != nil {
				t.Errorf("np=%d: %v", p, err)
			}
		}
	}
}
