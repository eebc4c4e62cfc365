// Command ring passes a token around all ranks, several times. Each rank adds its number, so that
// rank 0 knows at the end that the token passed every rank.
//
//	gompirun -np 4 ring
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"gompi/comm"
)

func main() {
	if slices.Contains(os.Args[1:], "-version") {
		fmt.Println("ring", comm.Version())
		return
	}
	comm.Run(func(ctx context.Context, c *comm.Comm) error { return ring(ctx, c, 1000, os.Stdout) })
}

// ring passes the token around laps times. Rank 0 prints the time of a hop, and fails if the token
// has a wrong value.
func ring(ctx context.Context, c *comm.Comm, laps int, out io.Writer) error {
	rank, size := c.Rank(), c.Size()
	next, previous := (rank+1)%size, (rank-1+size)%size
	const tag = 0
	token := []int{0}
	begin := time.Now()
	for range laps {
		if rank == 0 { // one rank must send first
			if err := comm.Send(ctx, c, next, tag, token); err != nil {
				return err
			}
		}
		if _, err := comm.Recv(ctx, c, previous, tag, token); err != nil {
			return err
		}
		token[0] += rank
		if rank != 0 {
			if err := comm.Send(ctx, c, next, tag, token); err != nil {
				return err
			}
		}
	}
	if rank != 0 {
		return nil
	}
	hop := time.Since(begin) / time.Duration(laps*size)
	fmt.Fprintf(out, "%d laps around %d ranks, %v a hop\n", laps, size, hop)
	if want := laps * size * (size - 1) / 2; token[0] != want {
		return fmt.Errorf("the token says %d, want %d", token[0], want)
	}
	return nil
}
