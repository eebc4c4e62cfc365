package comm_test

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
	"gompi/comm/commtest"
)

// ranks runs fn on n ranks of this process. In a program started by gompirun, c is the result of
// comm.Init.
func ranks(n int, fn func(ctx context.Context, c *comm.Comm) error) {
	for _, err := range commtest.Ranks(context.Background(), n, comm.Config{}, fn) {
		if err != nil {
			fmt.Println(err)
		}
	}
}

func ExampleAllreduce() {
	ranks(4, func(ctx context.Context, c *comm.Comm) error {
		gradient := []float32{float32(c.Rank()), 1}
		if err := comm.Allreduce(ctx, c, gradient, gradient, comm.Avg); err != nil { // in place
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(gradient)
		}
		return nil
	})
	// Output: [1.5 1]
}

func ExampleSend() {
	ranks(2, func(ctx context.Context, c *comm.Comm) error {
		const tag = 7
		if c.Rank() == 0 {
			return comm.Send(ctx, c, 1, tag, []int{1, 2, 3})
		}
		got := make([]int, 10)
		st, err := comm.Recv(ctx, c, comm.AnySource, tag, got)
		if err != nil {
			return err
		}
		fmt.Println(got[:st.Count()], "from", st.Source)
		return nil
	})
	// Output: [1 2 3] from 0
}

func ExampleRun() {
	comm.Run(func(ctx context.Context, c *comm.Comm) error { // under gompirun -np 4: 4 processes
		sum := []int{0}
		err := comm.Allreduce(ctx, c, []int{c.Rank()}, sum, comm.Sum)
		fmt.Println("rank", c.Rank(), "of", c.Size(), "has the sum", sum[0])
		return err
	})
}

func ExampleSendValue() {
	ranks(2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			return comm.SendValue(ctx, c, 1, 0, map[string][]float64{"left": {1, 2}, "right": nil})
		}
		parts, st, err := comm.RecvValue[map[string][]float64](ctx, c, comm.AnySource, 0)
		fmt.Println(parts["left"], "from", st.Source)
		return err
	})
	// Output: [1 2] from 0
}

func ExampleComm_Split() {
	ranks(6, func(ctx context.Context, c *comm.Comm) error {
		row, err := c.Split(ctx, c.Rank()/3, c.Rank()) // two rows of three
		if err != nil {
			return err
		}
		defer row.Close(ctx)
		sum := []int{c.Rank()}
		if err := comm.Allreduce(ctx, row, sum, sum, comm.Sum); err != nil {
			return err
		}
		sums := make([]int, c.Size())
		if err := comm.Gather(ctx, c, 0, sum, sums); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(sums)
		}
		return nil
	})
	// Output: [3 3 3 12 12 12]
}

func ExampleComm_Iallreduce() {
	ranks(3, func(ctx context.Context, c *comm.Comm) error {
		a, b := []float64{1}, []float64{2}
		first := c.Iallreduce(comm.Of(a), comm.Of(a), comm.Sum)
		second := c.Iallreduce(comm.Of(b), comm.Of(b), comm.Sum)
		// Compute something else here: the sums continue.
		if err := comm.WaitAll(ctx, first, second); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(a[0], b[0])
		}
		return nil
	})
	// Output: 3 6
}

func ExampleComm_AllreduceInit() {
	ranks(2, func(ctx context.Context, c *comm.Comm) error {
		loss := make([]float64, 1)
		most := c.AllreduceInit(comm.Of(loss), comm.Of(loss), comm.Max)
		for step := range 3 {
			loss[0] = float64(step * c.Rank())
			if _, err := most.Start().Wait(ctx); err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(loss[0])
			}
		}
		return nil
	})
	// Output:
	// 0
	// 1
	// 2
}

func ExampleAllreduceFunc() {
	type pair = comm.Loc[int64] // the map x -> Value*x + Index
	compose := func(acc, in []pair) {
		for i, g := range in {
			acc[i] = pair{Value: acc[i].Value * g.Value, Index: acc[i].Value*g.Index + acc[i].Index}
		}
	}
	ranks(3, func(ctx context.Context, c *comm.Comm) error {
		f := []pair{{Value: 10, Index: int64(c.Rank())}}
		if err := comm.AllreduceFunc(ctx, c, f, f, compose); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(f[0].Value, f[0].Index) // 10*(10*(10x+2)+1)+0
		}
		return nil
	})
	// Output: 1000 210
}

func ExampleComm_Group() {
	ranks(4, func(ctx context.Context, c *comm.Comm) error {
		workers, err := c.Group().Excl(0)
		if err != nil {
			return err
		}
		sub, err := c.Create(ctx, workers)
		if err != nil || sub == nil { // rank 0 is not in it
			return err
		}
		defer sub.Close(ctx)
		if sub.Rank() == 0 {
			fmt.Println("rank", c.Rank(), "is", sub)
		}
		return comm.Barrier(ctx, sub)
	})
	// Output: rank 1 is world/create[0/3]
}

func ExampleComm_Probe() {
	ranks(2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			return comm.Send(ctx, c, 1, 0, []float64{1, 2, 3})
		}
		st, err := c.Probe(ctx, 0, comm.AnyTag) // waits, and leaves the message
		if err != nil {
			return err
		}
		got := make([]float64, st.Count())
		_, err = comm.Recv(ctx, c, st.Source, st.Tag, got)
		fmt.Println(got)
		return err
	})
	// Output: [1 2 3]
}

func ExampleWaitAll() {
	ranks(3, func(ctx context.Context, c *comm.Comm) error { // a ring
		right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
		out, in := []int{c.Rank()}, make([]int, 1)
		if err := comm.WaitAll(ctx, comm.Irecv(c, left, 0, in), comm.Isend(c, right, 0, out)); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("rank 0 got", in[0])
		}
		return nil
	})
	// Output: rank 0 got 2
}

func ExampleGatherv() {
	ranks(3, func(ctx context.Context, c *comm.Comm) error {
		mine := make([]int, c.Rank()+1) // of another length on each rank
		for i := range mine {
			mine[i] = 10 * c.Rank()
		}
		all := make([]int, 1+2+3)
		err := comm.Gatherv(ctx, c, 0, mine, all, []int{1, 2, 3}, nil)
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [0 10 10 20 20 20]
}

func ExampleLay() {
	ranks(2, func(ctx context.Context, c *comm.Comm) error {
		const rows, cols = 3, 4
		m := make([]float64, rows*cols)
		column, err := comm.Vector(rows, 1, cols)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for i := range m {
				m[i] = float64(i)
			}
			last, err := comm.Lay(m[cols-1:], column)
			if err != nil {
				return err
			}
			return c.Send(ctx, 1, 0, last)
		}
		first, err := comm.Lay(m, column)
		if err != nil {
			return err
		}
		_, err = c.Recv(ctx, 0, 0, first)
		fmt.Println(m)
		return err
	})
	// Output: [3 0 0 0 7 0 0 0 11 0 0 0]
}

func ExampleComm_Shrink() {
	lost := errors.New("lost")
	for _, err := range commtest.Ranks(context.Background(), 3, comm.Config{},
		func(ctx context.Context, c *comm.Comm) error { // under gompirun -recover
			if c.Rank() == 1 {
				return lost // ends this rank
			}
			sum := []int{1}
			err := comm.Allreduce(ctx, c, sum, sum, comm.Sum)
			if !errors.Is(err, comm.ErrRevoked) {
				return err
			}
			rest, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			defer rest.Close(ctx)
			sum[0] = 1
			if err := comm.Allreduce(ctx, rest, sum, sum, comm.Sum); err != nil {
				return err
			}
			if rest.Rank() == 0 {
				fmt.Println(sum[0], "ranks go on")
			}
			return nil
		}) {
		if err != nil && !errors.Is(err, lost) && !errors.Is(err, comm.ErrRevoked) { // of c, at its end
			fmt.Println(err)
		}
	}
	// Output: 2 ranks go on
}
