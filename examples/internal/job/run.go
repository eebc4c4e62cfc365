// Package job is the common part of the examples that train: flags, the start and the end of a
// program, and the loop over epochs and batches. That loop is Train, in train.go, with everything
// about ranks.
package job

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gompi/comm"
	"gompi/internal/env"
	"gompi/internal/version"
)

// Run is the main of a program: Run parses the arguments, joins the job, calls train on every rank,
// leaves the job, and prints the time of each part. Only rank 0 prints: on other ranks out
// discards. Run returns the exit status: 0, 1 on an error, 2 for invalid arguments.
func Run(name string, stdout, stderr io.Writer, parse func() error,
	train func(ctx context.Context, c *comm.Comm, out io.Writer) error) int {
	end := func(context.Context, *comm.Comm) (*comm.Comm, error) { return nil, nil }
	return RunOn(name, stdout, stderr, parse, end, train)
}

// RunOn is Run that continues when ranks die: RunOn then calls train again, with the communicator
// of renew, whose rank 0 may be another process. If renew returns nil, the death ends the job.
func RunOn(name string, stdout, stderr io.Writer, parse func() error,
	renew func(ctx context.Context, c *comm.Comm) (*comm.Comm, error),
	train func(ctx context.Context, c *comm.Comm, out io.Writer) error) int {
	began := launched()
	switch err := parse(); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(stdout, version.Text(name))
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v (%s -h lists the flags)\n", name, err, name)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := comm.Init(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	ready := time.Now()
	out := outputOf(c, stdout)
	for {
		err = train(ctx, c, out)
		if !errors.Is(err, comm.ErrRevoked) && !errors.Is(err, comm.ErrLeft) {
			break
		}
		next, failed := renew(ctx, c)
		if next == nil {
			err = errors.Join(err, failed)
			break
		}
		if err = c.Close(ctx); err != nil {
			break
		}
		c, out = next, outputOf(next, stdout)
	}
	done := time.Now()
	if err == nil {
		err = c.Close(ctx)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", name, named(c, err))
		return 1
	}
	fmt.Fprintf(out, "start-up %.2f s, run %.2f s, shutdown %.2f s\n",
		ready.Sub(began).Seconds(), done.Sub(ready).Seconds(), time.Since(done).Seconds())
	return 0
}

// named returns the text of an error with the rank that failed: this one, unless the error begins
// with another rank.
func named(c *comm.Comm, err error) string {
	if strings.HasPrefix(err.Error(), "rank ") {
		return err.Error()
	}
	return fmt.Sprintf("rank %d: %v", c.Rank(), err)
}

func outputOf(c *comm.Comm, stdout io.Writer) io.Writer {
	if c.Rank() != 0 {
		return io.Discard
	}
	return stdout
}

// launched returns when gompirun began to start the ranks, or the present time without gompirun.
func launched() time.Time {
	if ns, err := strconv.ParseInt(os.Getenv(env.StartNS), 10, 64); err == nil {
		return time.Unix(0, ns)
	}
	return time.Now()
}
