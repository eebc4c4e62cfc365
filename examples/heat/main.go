// Command heat computes how heat spreads in a plate. The upper edge is kept hot, the other edges
// cold, and two discs are hot at first.
//
//	gompirun -np 4 heat -png plate.png
//
// The ranks are a grid (comm/topology), and each has a block of the plate's points. A step replaces
// a point by the mean of itself and its four neighbours, so a block needs its halo: the points
// around it, from neighbouring blocks. plate.go has the step. In gather.go rank 0 compares the
// plate at the end with a run by one rank, which has to be equal to the last bit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gompi/comm"
	"gompi/comm/topology"
	"gompi/examples/internal/job"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// flags are the command line. All ranks have the same.
type flags struct {
	rows, cols, steps int
	png               string
	check             bool
}

func run(args []string, stdout, stderr io.Writer) int {
	var f flags
	parse := func() error { return f.parse(args, stdout) }
	return job.Run("heat", stdout, stderr, parse, func(ctx context.Context, c *comm.Comm, out io.Writer) error {
		return heat(ctx, c, &f, out)
	})
}

func (f *flags) parse(args []string, help io.Writer) error {
	fs := flag.NewFlagSet("heat", flag.ContinueOnError)
	fs.IntVar(&f.rows, "rows", 300, "points of the plate from above to below")
	fs.IntVar(&f.cols, "cols", 400, "points of the plate from left to right")
	fs.IntVar(&f.steps, "steps", 1000, "steps to compute")
	fs.StringVar(&f.png, "png", "", "file for a picture of the plate, which rank 0 writes (default none)")
	fs.BoolVar(&f.check, "check", true, "have rank 0 compute the plate alone, too, and compare")
	others, err := job.ParseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, "usage: heat [flags]\n\nComputes how heat spreads in a plate. Alone, or under gompirun with as many ranks as one likes.\n\n")
		fs.SetOutput(help)
		fs.PrintDefaults()
		return err
	case err != nil:
		return err
	case len(others) > 0:
		return fmt.Errorf("argument %q: want flags alone", others[0])
	case f.rows < 1 || f.cols < 1 || f.steps < 1:
		return fmt.Errorf("-rows %d -cols %d -steps %d: want at least 1 of each", f.rows, f.cols, f.steps)
	}
	return nil
}

// heat computes the plate, and reports on rank 0.
func heat(ctx context.Context, c *comm.Comm, f *flags, out io.Writer) error {
	grid, err := gridOf(ctx, c, f)
	if err != nil {
		return err
	}
	b := blockOf(grid.Coords(grid.Rank()), grid.Dims(), f)
	if err := b.connect(grid); err != nil {
		return err
	}
	begin := time.Now()
	for range f.steps {
		if err := b.step(ctx); err != nil {
			return err
		}
	}
	each := time.Since(begin) / time.Duration(f.steps)
	residual := []float64{b.residual()}
	if err := comm.Reduce(ctx, grid.Comm, 0, residual, residual, comm.Max); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d x %d points on %d x %d ranks: %v a step; the last of %d changed a point by %.2g at most\n",
		f.rows, f.cols, grid.Dims()[0], grid.Dims()[1], each, f.steps, residual[0])
	plate, err := gather(ctx, grid, b, f)
	if err == nil && c.Rank() == 0 {
		err = finish(plate, f, out)
	}
	return errors.Join(err, grid.Close(ctx))
}

// gridOf returns all ranks as a grid that is as square as possible.
func gridOf(ctx context.Context, c *comm.Comm, f *flags) (*topology.Cart, error) {
	dims := make([]int, 2)
	if err := topology.Dims(c.Size(), dims); err != nil {
		return nil, err
	}
	if f.rows < dims[0] || f.cols < dims[1] {
		return nil, fmt.Errorf("-rows %d -cols %d on %d x %d ranks: want at least a point for each", f.rows, f.cols,
			dims[0], dims[1])
	}
	return topology.NewCart(ctx, c, dims, []bool{false, false})
}

// finish checks the plate and draws it.
func finish(plate []float64, f *flags, out io.Writer) error {
	if f.check {
		begin := time.Now()
		if err := compare(plate, alone(f), f); err != nil {
			return err
		}
		fmt.Fprintf(out, "equal to a run by one rank: %v a step\n", time.Since(begin)/time.Duration(f.steps))
	}
	if f.png == "" {
		return nil
	}
	if err := draw(plate, f); err != nil {
		return err
	}
	fmt.Fprintln(out, "picture in", f.png)
	return nil
}
