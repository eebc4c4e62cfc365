// Command hello is the smallest gompi program: every rank says who it is.
//
//	gompirun -np 4 hello
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"gompi/comm"
)

func main() {
	if slices.Contains(os.Args[1:], "-version") {
		fmt.Println("hello", comm.Version())
		return
	}
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	if err := hello(ctx, c, out); err != nil {
		return err
	}
	return c.Close(ctx) // without it, gompirun takes the rank's end for a crash
}

// hello prints this rank's line when all ranks have started.
func hello(ctx context.Context, c *comm.Comm, out io.Writer) error {
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "hello from rank %d of %d on %s\n", c.Rank(), c.Size(), c.Host(c.Rank()))
	return err
}
