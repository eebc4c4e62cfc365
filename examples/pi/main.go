// Command pi computes pi as the area under 4/(1+x²) from 0 to 1. Each rank adds up its share of
// narrow strips; one Reduce adds the shares.
//
//	gompirun -np 4 pi
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"gompi/comm"
)

func main() {
	if slices.Contains(os.Args[1:], "-version") {
		fmt.Println("pi", comm.Version())
		return
	}
	comm.Run(func(ctx context.Context, c *comm.Comm) error { return pi(ctx, c, 10_000_000, os.Stdout) })
}

// pi prints the result on rank 0, and fails there if it is not pi.
func pi(ctx context.Context, c *comm.Comm, strips int, out io.Writer) error {
	area := share(c.Rank(), c.Size(), strips)
	total := make([]float64, 1) // only the root's is filled
	if err := comm.Reduce(ctx, c, 0, []float64{area}, total, comm.Sum); err != nil {
		return err
	}
	if c.Rank() != 0 {
		return nil
	}
	fmt.Fprintf(out, "pi is %.12f, off by %.1e (%d ranks)\n", total[0], total[0]-math.Pi, c.Size())
	if !(math.Abs(total[0]-math.Pi) < 1e-9) {
		return fmt.Errorf("got %v, want %v", total[0], math.Pi)
	}
	return nil
}

// share adds up every size-th strip, beginning with number rank. The height of a strip is taken at
// its middle.
func share(rank, size, strips int) float64 {
	width := 1 / float64(strips)
	var sum float64
	for i := rank; i < strips; i += size {
		x := (float64(i) + 0.5) * width
		sum += 4 / (1 + x*x)
	}
	return sum * width
}
