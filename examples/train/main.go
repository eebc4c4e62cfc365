// Command train teaches a small network to predict the next byte of a text,
// on one rank or on many:
//
//	gompirun -np 4 train -steps 60
//
// Every rank holds the whole network and takes its share of each batch; the
// gradients are averaged over the ranks while the backward pass still computes.
// The curve is the same whatever the number of ranks.
//
// With -device cuda the network is on GPUs, one for each rank of a host or shared.
//
// Reading order: trainer.go is the training loop and all that has to do with
// ranks; internal/bytelm is the network, internal/cudann the same on a GPU, internal/text
// the data.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"gompi/internal/env"

	"gompi/comm"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 on an error, 2 if the arguments make no sense.
func run(args []string, stdout, stderr io.Writer) int {
	began := launched()
	cfg, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "train: %v (train -h lists the flags)\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := comm.Init(ctx)
	if err != nil {
		fmt.Fprintf(stderr, "train: %v\n", err)
		return 1
	}
	ready := time.Now()
	out := stdout
	if c.Rank() != 0 {
		out = io.Discard
	}
	res, err := train(ctx, c, cfg, out)
	done := time.Now()
	if err == nil {
		err = c.Close(ctx)
	}
	if err != nil {
		fmt.Fprintf(stderr, "train: rank %d: %v\n", c.Rank(), err)
		return 1
	}
	fmt.Fprintf(out, "result: loss %.3f bits/byte, accuracy %.1f %%, unigram %.3f, flate %.3f\n", res.loss, 100*res.accuracy, res.unigram, res.flate)
	fmt.Fprintf(out, "start-up %.2f s, run %.2f s, shutdown %.2f s\n",
		ready.Sub(began).Seconds(), done.Sub(ready).Seconds(), time.Since(done).Seconds())
	if c.Rank() == 0 && !(res.loss < res.unigram) { // also if it is not a number
		fmt.Fprintf(stderr, "train: nothing was learnt: the network predicts no better than the frequencies of single bytes\n")
	}
	return 0
}

// launched returns when gompirun began to start the ranks, if it says so, else the time now.
func launched() time.Time {
	if ns, err := strconv.ParseInt(os.Getenv(env.StartNS), 10, 64); err == nil {
		return time.Unix(0, ns)
	}
	return time.Now()
}
