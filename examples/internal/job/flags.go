package job

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"

	"gompi/comm"
)

// Flags are the common command line of trainings. A program fills in its defaults. All ranks have
// the same.
type Flags struct {
	Epochs    int
	SaveEvery int // epochs; 0: only after the last
	Batch     int // samples of one step, for each unit of BatchPer
	BatchPer  string
	Rate      float64
	Seed      uint64
	Snapshot  string // "": none
	Resume    string // auto, never or a file
	KeepBest  bool
	Eval      bool // only judge the snapshot's model
	Every     int  // steps between lines of progress; 0: none
}

// Parse parses the command line of the program called name into f. Numbers may stand between the
// flags: "toy 50 10" is "toy -epochs 50 -save-every 10". purpose is the first paragraph of the
// help, and more defines the program's own flags.
func (f *Flags) Parse(name, purpose string, args []string, help io.Writer, more func(*flag.FlagSet)) error {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	f.define(fs, name)
	if more != nil {
		more(fs)
	}
	numbers, err := ParseMixed(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(help, "usage: %s [flags] [EPOCHS [SAVE-EVERY]]\n\n%s\n\n", name, purpose)
		fs.SetOutput(help)
		fs.PrintDefaults()
	}
	if err != nil {
		return err
	}
	if err := Numbers(numbers, &f.Epochs, &f.SaveEvery); err != nil {
		return err
	}
	if f.Snapshot == "" && (f.SaveEvery > 0 || f.KeepBest || f.Eval && f.fileToResume() == "") {
		f.Snapshot = name + ".snapshot"
	}
	return f.check()
}

func (f *Flags) define(fs *flag.FlagSet, name string) {
	fs.IntVar(&f.Epochs, "epochs", f.Epochs, "stop after this many epochs")
	fs.IntVar(&f.SaveEvery, "save-every", f.SaveEvery,
		"save after this many epochs, and after the last (default only after that)")
	fs.IntVar(&f.Batch, "batch", f.Batch, "samples of one step, for each of what -batch-per says")
	fs.StringVar(&f.BatchPer, "batch-per", f.BatchPer,
		"whose samples -batch counts: those of each rank, of each node or of all ranks together")
	fs.Float64Var(&f.Rate, "lr", f.Rate, "learning rate, which is not changed for the number of ranks")
	fs.Uint64Var(&f.Seed, "seed", f.Seed,
		"seed of the first weights, of the order of samples, and of samples that are made up")
	fs.StringVar(&f.Snapshot, "snapshot", f.Snapshot,
		"file to save the training to and to go on from, written and read by rank 0 alone\n(default "+
			name+".snapshot with -save-every, -keep-best and -eval, else none)")
	fs.StringVar(&f.Resume, "resume", f.Resume,
		"auto: go on from -snapshot if the file exists; never: start afresh; FILE: go on from that")
	fs.BoolVar(&f.KeepBest, "keep-best", f.KeepBest,
		"keep the best model of all epochs in a file of its own, -snapshot with .best after it")
	fs.BoolVar(&f.Eval, "eval", f.Eval, "only judge the model in -resume FILE or -snapshot")
	fs.IntVar(&f.Every, "print-every", f.Every, "steps between lines of progress within an epoch; 0: none")
}

// ErrVersion is returned by ParseMixed for -version.
var ErrVersion = errors.New("the version is asked for")

// ParseMixed adds -version to the flags, parses them, and returns the arguments before, between and
// after the flags. ParseMixed prints nothing: the caller prints, once.
func ParseMixed(fs *flag.FlagSet, args []string) (others []string, err error) {
	fs.SetOutput(io.Discard)
	version := fs.Bool("version", false, "print the version, and no more")
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if *version {
			return nil, ErrVersion
		}
		args = fs.Args()
		if len(args) == 0 {
			return others, nil
		}
		others, args = append(others, args[0]), args[1:]
	}
}

// Numbers parses "EPOCHS [SAVE-EVERY]", the arguments of the scripts in PyTorch's tutorial.
func Numbers(args []string, epochs, saveEvery *int) error {
	targets := []*int{epochs, saveEvery}
	if len(args) > len(targets) {
		return fmt.Errorf("argument %q: want at most two numbers, EPOCHS and SAVE-EVERY", args[2])
	}
	for i, s := range args {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("argument %q: want a number, EPOCHS or SAVE-EVERY", s)
		}
		*targets[i] = n
	}
	return nil
}

func (f *Flags) check() error {
	for _, n := range []struct {
		name      string
		got, want int
	}{
		{"epochs", f.Epochs, 1}, {"save-every", f.SaveEvery, 0}, {"batch", f.Batch, 1}, {"print-every", f.Every, 0},
	} {
		if n.got < n.want {
			return fmt.Errorf("-%s %d: want at least %d", n.name, n.got, n.want)
		}
	}
	if !(f.Rate > 0) || math.IsInf(f.Rate, 1) {
		return fmt.Errorf("-lr %v: want a positive, finite number", f.Rate)
	}
	if f.BatchPer != "rank" && f.BatchPer != "node" && f.BatchPer != "all" {
		return fmt.Errorf("-batch-per %q: want rank, node or all", f.BatchPer)
	}
	if f.Resume == "" {
		return errors.New(`-resume "": want auto, never or a file`)
	}
	if f.Eval && f.Resume == "never" {
		return errors.New("-eval with -resume never: want a snapshot to judge")
	}
	return nil
}

// fileToResume returns the FILE of -resume FILE.
func (f *Flags) fileToResume() string {
	if f.Resume == "auto" || f.Resume == "never" {
		return ""
	}
	return f.Resume
}

// batchOfAll returns the samples of one step of all ranks together. batchOfAll is collective.
func (f *Flags) batchOfAll(ctx context.Context, c *comm.Comm) (int, error) {
	switch f.BatchPer {
	case "rank":
		return f.Batch * c.Size(), nil
	case "node":
		node, err := c.SplitHost(ctx)
		if err != nil {
			return 0, err
		}
		nodes := []int{0}
		if node.Rank() == 0 {
			nodes[0] = 1
		}
		if err := errors.Join(node.Close(ctx), comm.Allreduce(ctx, c, nodes, nodes, comm.Sum)); err != nil {
			return 0, err
		}
		return f.Batch * nodes[0], nil
	default:
		return f.Batch, nil
	}
}
