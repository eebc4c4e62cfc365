package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/measure"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	contest.Flags
	peers     []contest.Competitor
	gloo, ucx bool      // are peers, too
	busy      cli.Count // threads that compute beside all entrants
	measured  measure.Options
	set       *cli.Set
}

const usage = `usage: gompi-compare [flags] [OP...]

Measures gompi and its peers in turn, operation by operation and round after
round, and prints a table of ratios: the time of the fastest peer, divided by
gompi's. Cells that gompi loses are marked. OP is as for gompi-bench; all are
measured if none is given. With -hostfile it measures on other hosts, which have
the same files.

`

// everything is the default: all peers and operations.
var (
	everybody  = []string{"openmpi", "openmpi-xhc", "openmpi-acoll", "mpich", gloo}
	onHosts    = []string{"openmpi-hosts", "mpich-hosts"}
	everything = []string{
		"latency", "bw", "barrier", "skew", "bcast", "reduce", "allreduce", "reducescatter", "allgather", "gather", "scatter", "alltoall", "scan",
	}
	allSizes = cli.Sizes{8, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
)

// The names of the peers that are no MPI, and what the transport begins with where gompi uses UCX's
// transports of that name.
const (
	gloo    = "gloo"
	ucx     = "ucx"
	overUCX = "ucx:"
)

// parse reads the command line. Operations may stand between the flags. The
// config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-compare")}
	budget, sizes := cli.Duration(20*time.Millisecond), allSizes
	var peers, element, operator string
	s := cfg.set
	s.StringVar(&peers, "peers", strings.Join(everybody, ","), "whom to compare with (on other hosts "+strings.Join(onHosts, ",")+")")
	cfg.Declare(s, "2,4", 2*time.Minute, "run may take: an operation of one entrant, all sizes")
	cfg.DeclareBench(s)
	s.Var(&sizes, "sizes", "sizes to measure")
	s.StringVar(&element, "type", "float32", "element type")
	s.StringVar(&operator, "redop", "sum", "operator of reductions")
	s.BoolVar(&cfg.measured.InPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.BoolVar(&cfg.measured.Dirty, "dirty", false, "every rank writes its vectors anew before each call, off the clock")
	s.BoolVar(&cfg.measured.Alloc, "alloc", false, "gompi's vectors are from comm.Alloc; the peers' are what they always are")
	s.Var(&cfg.busy, "busy", "how many threads of gompi-compare compute meanwhile, as loaders of data would")
	s.Var(&budget, "budget", "how long a cell is timed for, and again back to back")
	var err error
	if cfg.Ops, err = s.ParseAll(args); err != nil {
		return cfg, err
	}
	if cfg.Ops == nil {
		cfg.Ops = everything
	}
	for _, op := range cfg.Ops {
		if !slices.Contains(measure.Names(), op) {
			return cfg, fmt.Errorf("operation %q: want one of %s", op, strings.Join(measure.Names(), ", "))
		}
	}
	cfg.measured.Ops, cfg.measured.Sizes = cfg.Ops, sizes
	cfg.Args = []string{"-format", "csv", "-sizes", sizes.String(), "-type", element, "-redop", operator, "-budget", budget.String()}
	if cfg.measured.InPlace {
		cfg.Args = append(cfg.Args, "-inplace")
	}
	if cfg.measured.Dirty {
		cfg.Args = append(cfg.Args, "-dirty")
	}
	err = errors.Join(cfg.Read(), cfg.Even())
	if cfg.HostNames != nil && !s.Changed("peers") {
		peers = strings.Join(onHosts, ",")
	}
	return cfg, errors.Join(err, cfg.choose(strings.Split(peers, ",")))
}

// choose finds the peers with the given names.
func (cfg *config) choose(names []string) error {
	found, others, err := contest.Find(names, gloo, ucx)
	cfg.peers, cfg.gloo, cfg.ucx = found, slices.Contains(others, gloo), slices.Contains(others, ucx)
	switch {
	case err != nil:
		return err
	case cfg.ucx && (!slices.Equal(cfg.NPs, []int{2}) || !strings.HasPrefix(cfg.Transport, overUCX) || cfg.measured.Dirty):
		return errors.New("peer ucx: want -np 2, -transport ucx:NAMES for both, and no -dirty")
	case len(others) > 0 && cfg.HostNames != nil:
		return fmt.Errorf("peers %s and %s: want no -hostfile, they run on this machine only", gloo, ucx)
	}
	return nil
}
