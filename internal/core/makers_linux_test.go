package core_test

import (
	"context"
	"errors"

	"gompi/comm"
)

// makers are drills of what is made by all ranks together, used once and given back.
// The communicators have all ranks of c in their order, so that who is lost has the same
// number in each.
var makers = map[string]func(ctx context.Context, c *comm.Comm, v []int64) (*comm.Comm, []int64, error){
	"split": func(ctx context.Context, c *comm.Comm, v []int64) (*comm.Comm, []int64, error) {
		s, err := c.Split(ctx, 0, c.Rank())
		return s, v, err
	},
	"dup": func(ctx context.Context, c *comm.Comm, v []int64) (*comm.Comm, []int64, error) {
		d, err := c.Dup(ctx)
		return d, v, err
	},
	"create_group": func(ctx context.Context, c *comm.Comm, v []int64) (*comm.Comm, []int64, error) {
		d, err := c.CreateGroup(ctx, c.Group(), 3)
		return d, v, err
	},
	"alloc": func(ctx context.Context, c *comm.Comm, v []int64) (*comm.Comm, []int64, error) {
		v, err := comm.Alloc[int64](ctx, c, len(v))
		return c, v, err
	},
}

// makeAgain makes something again and again, sums vectors of n elements with it, and
// gives it back, until that fails.
func makeAgain(ctx context.Context, c *comm.Comm,
	maker func(context.Context, *comm.Comm, []int64) (*comm.Comm, []int64, error), n int, turned func(i int)) error {
	private := vectorOf(n, 0)
	for i := 0; ; i++ {
		d, v, err := maker(ctx, c, private)
		if err != nil {
			return err
		}
		copy(v, vectorOf(n, i))
		if err := comm.Allreduce(ctx, d, v, v, comm.Sum); err != nil {
			return err
		}
		if err := equal("sum", v, vectorOf(n, i*c.Size())); err != nil {
			return err
		}
		if d != c {
			err = d.Close(ctx)
		} else {
			err = comm.Free(ctx, c, v)
		}
		if err != nil {
			return errors.Join(err, c.Err())
		}
		turned(i)
	}
}

func vectorOf(n, x int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(x)
	}
	return v
}
