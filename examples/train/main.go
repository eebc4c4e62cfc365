// Command train teaches a small network to predict the next byte of a text, on one rank or on many:
//
//	gompirun -np 4 train -steps 60
//
// Every rank holds the whole network and takes its share of each batch. The gradients are averaged
// over the ranks while the backward pass still computes. The curve is the same for any number of
// ranks.
//
// With -device cuda the network is on GPUs, one for each rank of a host or shared.
//
// Reading order: trainer.go has the training loop and everything about ranks; internal/bytelm is
// the network, internal/cudann the same on a GPU, corpus.go the data.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gompi/comm"
	"gompi/examples/internal/job"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 on an error, 2 for invalid arguments.
func run(args []string, stdout, stderr io.Writer) int {
	var cfg config
	parse := func() (err error) {
		cfg, err = parse(args, stdout)
		return err
	}
	var k kept
	return job.RunOn("train", stdout, stderr, parse, cfg.renew,
		func(ctx context.Context, c *comm.Comm, out io.Writer) error {
			res, err := train(ctx, c, cfg, out, &k)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "result: loss %.3f bits/byte, accuracy %.1f %%, unigram %.3f, flate %.3f\n", res.loss,
				100*res.accuracy, res.unigram, res.flate)
			if c.Rank() == 0 && !(res.loss < res.unigram) { // also if it is not a number
				fmt.Fprintf(stderr, "train: nothing was learnt: the network predicts no better than the frequencies of single bytes\n")
			}
			return nil
		})
}
