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
	comm.Run(func(ctx context.Context, c *comm.Comm) error { return hello(ctx, c, os.Stdout) })
}

// hello prints this rank's line when all ranks have started.
func hello(ctx context.Context, c *comm.Comm, out io.Writer) error {
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "hello from rank %d of %d on %s\n", c.Rank(), c.Size(), c.Host(c.Rank()))
	return err
}
