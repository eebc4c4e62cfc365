// Command counted makes calls whose numbers and bytes are known, for the tests of -stats.
//
//	counted calls          a few of each kind
//	counted work SLOW...   rounds of work, in which the ranks SLOW take a fifth longer
//	counted die N          N rounds, after which rank 1 kills itself in its first run
//	counted alone N        N rounds, then rank 0 works alone, and all leave
//	counted once N         N rounds, before the last of which rank 1 works
//	counted hang N         N rounds, before the last of which rank 1 works for ever
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"gompi/comm"
)

func main() {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err == nil {
		err = map[string]func(context.Context, *comm.Comm, []string) error{"calls": calls, "work": work, "die": die, "alone": alone, "once": once, "hang": hang}[os.Args[1]](ctx, c, os.Args[2:])
	}
	if err == nil {
		err = c.Close(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func calls(ctx context.Context, c *comm.Comm, _ []string) error {
	one, all := make([]int64, 1), make([]int64, c.Size())
	for range 1000 {
		if err := comm.Allreduce(ctx, c, one, one, comm.Sum); err != nil {
			return err
		}
	}
	for range 10 {
		if err := comm.Allreduce(ctx, c, one, one, comm.Sum); err != nil { // another place
			return err
		}
	}
	for range 7 {
		if err := comm.Allgather(ctx, c, one, all); err != nil {
			return err
		}
	}
	if err := ring(ctx, c); err != nil {
		return err
	}
	for range 3 {
		r := c.Iallreduce(comm.Of(one), comm.Of(one), comm.Sum)
		if _, err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return comm.Barrier(ctx, c)
}

// ring sends 5 messages of 800 bytes to the next rank, and one of 100,000.
func ring(ctx context.Context, c *comm.Comm) error {
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	out, in := make([]float64, 100), make([]float64, 100)
	for range 5 {
		s := comm.Isend(c, next, 3, out)
		if _, err := comm.Recv(ctx, c, last, 3, in); err != nil {
			return err
		}
		if err := comm.WaitAll(ctx, s); err != nil {
			return err
		}
	}
	long := make([]byte, 100_000)
	_, err := comm.Sendrecv(ctx, c, next, 4, long, last, 4, slices.Clone(long))
	return err
}

// round is the time of a rank that is not slow for its part of the work, long beside the delays
// of a busy processor.
const round = 40 * time.Millisecond

func work(ctx context.Context, c *comm.Comm, slow []string) error {
	takes := round
	if slices.Contains(slow, strconv.Itoa(c.Rank())) {
		takes += round / 5
	}
	sum := make([]float64, 1)
	for range 10 {
		time.Sleep(takes) // as long on a shared processor as on a free one
		if err := comm.Allreduce(ctx, c, []float64{1}, sum, comm.Sum); err != nil {
			return err
		}
	}
	return nil
}

// aloneFor is the time for which a rank works on its own.
const aloneFor = 600 * time.Millisecond

func alone(ctx context.Context, c *comm.Comm, args []string) error {
	err := rounds(ctx, c, args[0], func(int) {})
	if c.Rank() == 0 {
		time.Sleep(aloneFor)
	}
	return err
}

func once(ctx context.Context, c *comm.Comm, args []string) error {
	return rounds(ctx, c, args[0], func(left int) {
		if c.Rank() == 1 && left == 1 {
			time.Sleep(aloneFor)
		}
	})
}

func hang(ctx context.Context, c *comm.Comm, args []string) error {
	return rounds(ctx, c, args[0], func(left int) {
		if c.Rank() == 1 && left == 1 {
			select {}
		}
	})
}

func rounds(ctx context.Context, c *comm.Comm, times string, before func(left int)) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for ; n > 0; n-- {
		before(n)
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func die(ctx context.Context, c *comm.Comm, args []string) error {
	if err := rounds(ctx, c, args[0], func(int) {}); err != nil {
		return err
	}
	if c.Rank() == 1 && os.Getenv("GOMPI_RESTARTS") == "0" {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return comm.Barrier(ctx, c)
}
