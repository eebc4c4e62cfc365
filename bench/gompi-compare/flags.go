package main

import (
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
	gompirun, bench string // paths
	peers           []contest.Competitor
	transport       string
	csv, html       string // files
	plan            contest.Plan
	set             *cli.Set
}

const usage = `usage: gompi-compare [flags] [OP...]

Measures gompi and its peers in turn, operation by operation and round after
round, and prints a table of ratios: the time of the fastest peer, divided by
gompi's. Cells that gompi loses are marked. OP is as for gompi-bench.

`

// parse reads the command line. Operations may stand between the flags. The
// config has its set also after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-compare")}
	np, rounds, limit := cli.Count(2), cli.Count(5), cli.Duration(2*time.Minute)
	sizes := cli.Sizes{8, 1 << 10, 64 << 10, 4 << 20, 64 << 20}
	var peers, element, operator string
	var inPlace bool
	s := cfg.set
	s.StringVar(&peers, "peers", "openmpi-tcp,mpich-tcp", "whom to compare with")
	s.Var(&np, "np", "number of ranks")
	s.Var(&rounds, "rounds", "how often everything is measured")
	s.Var(&sizes, "sizes", "sizes to measure")
	s.StringVar(&element, "type", "float32", "element type")
	s.StringVar(&operator, "redop", "sum", "operator of reductions")
	s.BoolVar(&inPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.StringVar(&cfg.transport, "transport", "tcp", "transport that gompi is to use; empty: its own choice")
	s.Var(&limit, "limit", "how long one run may take: an operation of one entrant, all sizes")
	s.StringVar(&cfg.gompirun, "gompirun", contest.Beside("gompirun"), "the launcher")
	s.StringVar(&cfg.bench, "bench", contest.Beside("gompi-bench"), "gompi's benchmark")
	s.StringVar(&cfg.csv, "csv", "", "file for every row of every round")
	s.StringVar(&cfg.html, "html", "", "page with plots to add the medians to; made if there is none")
	for len(args) > 0 {
		rest, err := s.Parse(args)
		if err != nil {
			return cfg, err
		}
		if len(rest) > 0 {
			cfg.plan.Ops, rest = append(cfg.plan.Ops, rest[0]), rest[1:]
		}
		args = rest
	}
	if cfg.plan.Ops == nil {
		cfg.plan.Ops = []string{"latency", "bw", "allreduce", "bcast"}
	}
	for _, op := range cfg.plan.Ops {
		if !slices.Contains(measure.Names(), op) {
			return cfg, fmt.Errorf("operation %q: want one of %s", op, strings.Join(measure.Names(), ", "))
		}
	}
	cfg.plan.NP, cfg.plan.Rounds, cfg.plan.Limit = int(np), int(rounds), time.Duration(limit)
	cfg.plan.Args = []string{"-format", "csv", "-sizes", sizes.String(), "-type", element, "-redop", operator}
	if inPlace {
		cfg.plan.Args = append(cfg.plan.Args, "-inplace")
	}
	var err error
	cfg.peers, err = contest.Find(strings.Split(peers, ","))
	return cfg, err
}
