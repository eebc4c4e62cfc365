package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"gompi/comm"
	"gompi/comm/ddp"
)

// options are the command line beside job.Flags.
type options struct {
	dir    string // of the ratings; "": made up
	write  bool   // write made-up ratings to dir, and end
	sparse bool
	width  int // of the vectors of users and films
	decay  float64
	plan   plan // for made-up ratings
}

func (o *options) define(fs *flag.FlagSet) {
	fs.StringVar(&o.dir, "data", "", "folder with "+ratingsFile+" and "+moviesFile+
		" of MovieLens, such as ml-latest-small, which rank 0 alone reads\n(default: ratings are made up)")
	fs.BoolVar(&o.write, "gen", false, "write made-up ratings into the folder -data, if there are none, and end")
	fs.BoolVar(&o.sparse, "sparse", o.sparse, "send and update only the vectors that a batch has reached; =false: all")
	fs.IntVar(&o.plan.Ratings, "ratings", o.plan.Ratings,
		"ratings to make up, by as many users of as many films as MovieLens would have")
	fs.Float64Var(&o.decay, "decay", o.decay, "weight decay of AdamW")
	fs.IntVar(&o.width, "width", o.width, "numbers of the vector of a user and of a film")
}

func (o *options) check() error {
	const least, most = 1000, 1000000
	if n := o.plan.Ratings; n < least || n > most {
		return fmt.Errorf("-ratings %d: want %d to %d", n, least, most)
	}
	o.plan = likeMovieLens(o.plan.Ratings)
	if !(o.decay >= 0) || math.IsInf(o.decay, 1) {
		return fmt.Errorf("-decay %v: want a finite number, 0 or more", o.decay)
	}
	if o.width < 1 {
		return fmt.Errorf("-width %d: want at least 1", o.width)
	}
	if o.write && o.dir == "" {
		return errors.New("-gen without -data: want the folder to write to")
	}
	return nil
}

// share reads or makes up the ratings on rank 0 and sends them to the others.
func (o options) share(ctx context.Context, c *comm.Comm, seed uint64, out io.Writer) (set *dataset, err error) {
	err = ddp.OnRankZero(ctx, c, func() (err error) {
		set, err = o.open(seed, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return bcastSet(ctx, c, set)
}

func (o options) open(seed uint64, out io.Writer) (*dataset, error) {
	if o.dir == "" {
		fmt.Fprintf(out, "ratings: made up, with seed %d\n", seed)
		return makeRatings(o.plan, seed).Set(), nil
	}
	fmt.Fprintf(out, "ratings: the files in %s\n", o.dir)
	return readDataset(o.dir)
}

// generate writes the files, unless ratings exist.
func (o options) generate(seed uint64, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(o.dir, ratingsFile)); !errors.Is(err, os.ErrNotExist) {
		if err == nil {
			fmt.Fprintf(out, "ratings: the folder %s has %s\n", o.dir, ratingsFile)
		}
		return err
	}
	if err := makeRatings(o.plan, seed).Write(o.dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "ratings: made up with seed %d and written to the folder %s\n", seed, o.dir)
	return nil
}

// bcastSet returns rank 0's set on every rank.
func bcastSet(ctx context.Context, c *comm.Comm, s *dataset) (*dataset, error) {
	sizes, reachable := make([]int, 4), []float64{0}
	if c.Rank() == 0 {
		sizes = []int{s.Users, s.Films, len(s.Learnt.Stars), len(s.Held.Stars)}
		reachable[0] = s.Reachable
	}
	if err := errors.Join(comm.Bcast(ctx, c, 0, sizes), comm.Bcast(ctx, c, 0, reachable)); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		s = &dataset{Users: sizes[0], Films: sizes[1], Learnt: roomFor(sizes[2]), Held: roomFor(sizes[3]),
			Reachable: reachable[0]}
	}
	for _, l := range []ratingList{s.Learnt, s.Held} {
		if err := errors.Join(comm.Bcast(ctx, c, 0, l.Users), comm.Bcast(ctx, c, 0, l.Films),
			comm.Bcast(ctx, c, 0, l.Stars)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func roomFor(n int) ratingList {
	return ratingList{Users: make([]int32, n), Films: make([]int32, n), Stars: make([]float32, n)}
}
