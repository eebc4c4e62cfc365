package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/result"
	"gompi/comm"
	"gompi/cudaops"
	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// A runConfig is the command line of run.
type runConfig struct {
	measure.Options
	form   string
	memory string
	set    *cli.Set
}

func runUsage() string {
	return "usage: gompirun -np N gompi-bench run [flags] OP...\n\n" +
		"Times operations between ranks. OP is one of " + strings.Join(measure.Names(), ", ") + ".\n" +
		"A size is the bytes of one rank's vector, or of the block of allgather, alltoall,\n" +
		"reduce_scatter, gather and scatter. Every result is checked once before it is timed.\n" +
		"OP may also be " + strings.Join(measure.TrainingNames(), ", ") + ": a step of data-parallel training of\n" +
		"that model, of which the gradients alone are there.\n\n"
}

// An elements holds the flags for the elements of vectors and their reduction.
type elements struct{ element, operator string }

func (e *elements) declare(s *cli.Set) {
	s.StringVar(&e.element, "type", "float32", "element type")
	s.StringVar(&e.operator, "redop", "sum", "operator of reductions")
}

// parseRun parses the command line. Operations may stand between the flags. After an error, too,
// the config has its FlagSet.
func parseRun(args []string) (runConfig, error) {
	cfg := runConfig{Options: measure.Options{Check: true}, set: cli.New("gompi-bench run")}
	budget := cli.Duration(measure.DefaultBudget)
	var sizes sizeList
	for n := 8; n <= 4<<20; n *= 2 {
		sizes = append(sizes, n)
	}
	var what elements
	s := cfg.set
	s.Var(&sizes, "sizes", "sizes to measure, as 8,1K,1M")
	what.declare(s)
	s.BoolVar(&cfg.InPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.Var(&budget, "budget", "how long a cell is timed for, and again back to back")
	s.BoolVar(&cfg.Check, "check", true, "check what each operation delivers, once for each size")
	s.BoolVar(&cfg.Alloc, "alloc", false, "vectors from comm.Alloc, which ranks of one host read and write in place")
	s.StringVar(&cfg.memory, "mem", "host",
		"memory of the vectors: host, or cuda for GPUs, which local ranks take in turn")
	s.StringVar(&cfg.form, "format", "table", "table or csv")
	var err error
	if cfg.Ops, err = s.ParseAll(args); err != nil {
		return cfg, err
	}
	cfg.Budget, cfg.Sizes = time.Duration(budget), sizes
	if cfg.Type, err = mem.ParseType(what.element); err != nil {
		return cfg, err
	}
	if cfg.Redop, err = mem.ParseOp(what.operator); err != nil {
		return cfg, err
	}
	switch {
	case !slices.Contains([]string{"host", "cuda"}, cfg.memory):
		return cfg, fmt.Errorf("-mem %q: want host or cuda", cfg.memory)
	case cfg.Alloc && cfg.memory != "host":
		return cfg, fmt.Errorf("-alloc with -mem %s: want host memory", cfg.memory)
	case !slices.Contains(result.Forms, cfg.form):
		return cfg, fmt.Errorf("-format %q: want %s", cfg.form, strings.Join(result.Forms, " or "))
	}
	return cfg, nil
}

// runMain returns the exit status: 0, 1 after an error, 2 for invalid arguments. Rank 0 prints the
// messages that are the same on all ranks.
func runMain(args []string, stdout, stderr io.Writer) int {
	cfg, wrong := parseRun(args)
	if cfg.set.Answer(wrong, runUsage()+cfg.set.FlagUsages(), stdout) {
		return 0
	}
	ctx := context.Background() // gompirun ends the job; so does comm if a rank dies
	c, err := comm.Init(ctx)
	if err != nil {
		return fail(stderr, "run", 1, err)
	}
	if wrong == nil {
		wrong = cfg.Validate(c.Size())
	}
	if wrong != nil { // all ranks close, and rank 0 prints the reason
		if err := c.Close(ctx); err != nil {
			wrong = errors.Join(wrong, err)
		}
		if c.Rank() != 0 {
			return 0
		}
		return fail(stderr, "run", 2, wrong)
	}
	out := stdout
	if c.Rank() != 0 {
		out = io.Discard
	}
	if err := cfg.measure(ctx, c, out); err != nil {
		return fail(stderr, "run", 1, err)
	}
	return 0
}

// localDevice returns the GPU of this rank: the ranks of a host take GPUs in turn.
func localDevice() (*cudaops.Device, error) {
	devices, err := cudaops.Devices()
	if err != nil {
		return nil, err
	}
	local, err := env.Int(env.LocalRank)
	if err != nil {
		return nil, err
	}
	return devices[local%len(devices)], nil
}

// measure measures, writes the rows, and leaves the job.
func (cfg runConfig) measure(ctx context.Context, c *comm.Comm, out io.Writer) error {
	if cfg.memory == "cuda" {
		device, err := localDevice()
		if err != nil {
			return err
		}
		stream, err := device.NewStream()
		if err != nil {
			return err
		}
		defer stream.Close()
		cfg.Space, cfg.Stream = device, stream
	}
	w := result.NewWriter(out, cfg.form)
	if err := measure.Run(ctx, c, cfg.Options, w.Write); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.Close(ctx)
}
