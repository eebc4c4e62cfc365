package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/measure"
	"gompi/internal/cli"
	"gompi/internal/mem"
)

// A config is what the command line says.
type config struct {
	measure.Options
	format  string
	memory  string
	profile bool
	set     *cli.Set
}

func usage() string {
	return "usage: gompirun -np N gompi-bench [flags] OP...\n\n" +
		"Times operations between ranks. OP is one of " + strings.Join(measure.Names(), ", ") + ".\n" +
		"A size is the bytes of one rank's vector, or of the block of allgather, alltoall,\n" +
		"reducescatter, gather and scatter. Every result is checked once before it is timed.\n" +
		"skew is how far apart ranks of one host leave a barrier.\n" +
		"OP may also be " + strings.Join(measure.Models(), ", ") + ": a step of data-parallel training of\n" +
		"that model, of which the gradients alone are there.\n\n"
}

// parse reads the command line. Operations may stand between the flags. The
// config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{Options: measure.Options{Check: true}, set: cli.New("gompi-bench")}
	budget := cli.Duration(measure.DefaultBudget)
	var sizes cli.Sizes
	from, to, factor := cli.Size(8), cli.Size(4<<20), cli.Count(2)
	element, operator := "float32", "sum"
	s := cfg.set
	s.Var(&sizes, "sizes", "sizes to measure, as 8,1K,1M (default those from -min to -max)")
	s.Var(&from, "min", "smallest size")
	s.Var(&to, "max", "largest size")
	s.Var(&factor, "factor", "what each size is multiplied with to get the next")
	s.StringVar(&element, "type", element, "element type")
	s.StringVar(&operator, "redop", operator, "operator of reductions")
	s.BoolVar(&cfg.InPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.BoolVar(&cfg.Dirty, "dirty", false, "every rank writes its vectors anew before each call, off the clock")
	s.Var(&budget, "budget", "how long a cell is timed for, and again back to back")
	s.BoolVar(&cfg.Check, "check", true, "check what each operation delivers, once for each size")
	s.BoolVar(&cfg.Alloc, "alloc", false, "vectors from comm.Alloc, which ranks of one host read and write in place")
	s.StringVar(&cfg.memory, "mem", "host", "memory of the vectors: host, or cuda for GPUs, which local ranks take in turn")
	s.BoolVar(&cfg.profile, "profile", false, "measure, without gompirun, what this machine's processors are good at, and keep it for its jobs")
	s.StringVar(&cfg.format, "format", "table", "table, csv or json")
	var err error
	if cfg.Ops, err = s.ParseAll(args); err != nil {
		return cfg, err
	}
	cfg.Budget = time.Duration(budget)
	if cfg.Type, err = mem.ParseType(element); err != nil {
		return cfg, err
	}
	if cfg.Redop, err = mem.ParseOp(operator); err != nil {
		return cfg, err
	}
	if !slices.Contains([]string{"host", "cuda"}, cfg.memory) {
		return cfg, fmt.Errorf("-mem %q: want host or cuda", cfg.memory)
	}
	if cfg.Alloc && cfg.memory != "host" {
		return cfg, fmt.Errorf("-alloc with -mem %s: want host memory", cfg.memory)
	}
	if !slices.Contains([]string{"table", "csv", "json"}, cfg.format) {
		return cfg, fmt.Errorf("-format %q: want table, csv or json", cfg.format)
	}
	cfg.Sizes = sizes
	if sizes == nil {
		cfg.Sizes, err = ladder(int(from), int(to), int(factor))
	}
	return cfg, err
}

// ladder returns the sizes from least to most, each factor times the one before.
func ladder(least, most, factor int) ([]int, error) {
	switch {
	case least < 1:
		return nil, errors.New("-min 0: want at least 1; -sizes can hold a 0")
	case factor < 2:
		return nil, fmt.Errorf("-factor %d: want at least 2", factor)
	case least > most:
		return nil, fmt.Errorf("-min %d, -max %d: want the smaller first", least, most)
	}
	var sizes []int
	for n := least; ; n *= factor {
		sizes = append(sizes, n)
		if n > most/factor {
			return sizes, nil
		}
	}
}
