package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/atomicfile"
)

// A source is the origin of the pictures.
type source struct {
	dir     string // "": made up
	write   bool   // write made-up pictures to dir, and end
	samples int    // number made up for training
}

func (d *source) define(fs *flag.FlagSet) {
	fs.StringVar(&d.dir, "data", "", "folder with MNIST's four files, "+trainImages+
		" and so on, compressed or not, which rank 0 alone reads\n(default: digits are made up)")
	fs.BoolVar(&d.write, "gen", false, "write made-up digits into the folder -data, if there are none, and end")
	fs.IntVar(&d.samples, "samples", d.samples, "digits to make up to train on; a fifth as many are held out")
}

func (d *source) check() error {
	if d.samples < 5 {
		return fmt.Errorf("-samples %d: want at least 5", d.samples)
	}
	if d.write && d.dir == "" {
		return errors.New("-gen without -data: want the folder to write to")
	}
	return nil
}

// share reads or makes up the pictures on rank 0 and sends them to the others.
func (d source) share(ctx context.Context, c *comm.Comm, seed uint64, out io.Writer) (learnt, held *digits, err error) {
	err = ddp.OnRankZero(ctx, c, func() (err error) {
		learnt, held, err = d.open(seed, out)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, set := range []**digits{&learnt, &held} {
		if *set, err = bcastSet(ctx, c, *set); err != nil {
			return nil, nil, err
		}
	}
	return learnt, held, nil
}

// open returns the pictures for training and for judging.
func (d source) open(seed uint64, out io.Writer) (learnt, held *digits, err error) {
	if d.dir == "" {
		fmt.Fprintf(out, "pictures: digits that are made up, with seed %d\n", seed)
		learnt, held = d.make(seed)
		return learnt, held, nil
	}
	fmt.Fprintf(out, "pictures: the files in %s\n", d.dir)
	if learnt, err = readDigits(d.dir, trainImages, trainLabels); err != nil {
		return nil, nil, err
	}
	if held, err = readDigits(d.dir, testImages, testLabels); err != nil {
		return nil, nil, err
	}
	return learnt, held, check(d.dir, learnt, held)
}

// check returns an error unless the network can take the pictures.
func check(dir string, learnt, held *digits) error {
	if held.Height != learnt.Height || held.Width != learnt.Width || held.Height < 16 || held.Width < 16 {
		return fmt.Errorf("pictures in %s of %d x %d and %d x %d pixels: want one size, of 16 x 16 or more",
			dir, learnt.Height, learnt.Width, held.Height, held.Width)
	}
	for _, set := range []*digits{learnt, held} {
		for i, l := range set.Labels {
			if l > 9 {
				return fmt.Errorf("label %d in %s is %d: want 0 to 9", i, dir, l)
			}
		}
	}
	return nil
}

func (d source) make(seed uint64) (learnt, held *digits) {
	return makeDigits(d.samples, seed), makeDigits(d.samples/5, ^seed)
}

// generate writes the files, unless they exist. An incomplete set of files is refused and left
// unchanged.
func (d source) generate(seed uint64, out io.Writer) error {
	var there, missing []string
	for _, name := range []string{trainImages, trainLabels, testImages, testLabels} {
		if found(d.dir, name) || found(d.dir, name+".gz") {
			there = append(there, name)
		} else {
			missing = append(missing, name)
		}
	}
	switch {
	case len(missing) == 0:
		fmt.Fprintf(out, "pictures: the folder %s has all four files\n", d.dir)
		return nil
	case len(there) > 0:
		return fmt.Errorf("-gen: the folder %s has %s but not %s: want all four files, or none to have them made",
			d.dir, strings.Join(there, " and "), strings.Join(missing, " and "))
	}
	learnt, held := d.make(seed)
	files := slices.Concat(learnt.Files(trainImages, trainLabels), held.Files(testImages, testLabels))
	if err := atomicfile.Write(d.dir, files...); err != nil {
		return err
	}
	fmt.Fprintf(out, "pictures: made up with seed %d and written to the folder %s\n", seed, d.dir)
	return nil
}

func found(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// bcastSet returns rank 0's set on every rank.
func bcastSet(ctx context.Context, c *comm.Comm, s *digits) (*digits, error) {
	shape := make([]int, 3)
	if c.Rank() == 0 {
		shape = []int{len(s.Labels), s.Height, s.Width}
	}
	if err := comm.Bcast(ctx, c, 0, shape); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		s = &digits{Height: shape[1], Width: shape[2], Labels: make([]byte, shape[0]),
			Pixels: make([]byte, shape[0]*shape[1]*shape[2])}
	}
	return s, errors.Join(comm.Bcast(ctx, c, 0, s.Labels), comm.Bcast(ctx, c, 0, s.Pixels))
}
