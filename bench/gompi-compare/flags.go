package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/limits"
	"gompi/bench/internal/measure"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	gompirun, bench string // paths
	peers           []contest.Competitor
	gloo, ucx       bool // are peers, too
	transport       string
	csv, html       string          // files
	busy            cli.Count       // threads that compute beside all entrants
	hosts, rsh      []string        // other hosts to run on, and the command that logs in
	link            limits.LinkFlag // of each of them
	measured        measure.Options
	plan            contest.Plan
	set             *cli.Set
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
	rounds, limit, budget := cli.Count(5), cli.Duration(2*time.Minute), cli.Duration(20*time.Millisecond)
	sizes := allSizes
	var peers, np, element, operator, file, rsh string
	s := cfg.set
	s.StringVar(&peers, "peers", strings.Join(everybody, ","), "whom to compare with (on other hosts "+strings.Join(onHosts, ",")+")")
	s.StringVar(&np, "np", "2,4", "numbers of ranks")
	s.Var(&rounds, "rounds", "how often everything is measured")
	s.Var(&sizes, "sizes", "sizes to measure")
	s.StringVar(&element, "type", "float32", "element type")
	s.StringVar(&operator, "redop", "sum", "operator of reductions")
	s.BoolVar(&cfg.measured.InPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.BoolVar(&cfg.measured.Dirty, "dirty", false, "every rank writes its vectors anew before each call, off the clock")
	s.BoolVar(&cfg.measured.Alloc, "alloc", false, "gompi's vectors are from comm.Alloc; the peers' are what they always are")
	s.Var(&cfg.busy, "busy", "how many threads of gompi-compare compute meanwhile, as loaders of data would")
	s.StringVar(&file, "hostfile", "", "other hosts to run on; ranks are dealt out evenly")
	s.StringVar(&rsh, "rsh", "ssh", "the command that logs in to them")
	s.Var(&cfg.link, "link", limits.LinkUsage)
	s.StringVar(&cfg.transport, "transport", "", "what gompi is to use (default its own choice)")
	s.Var(&budget, "budget", "how long a cell is timed for, and again back to back")
	s.Var(&limit, "limit", "how long one run may take: an operation of one entrant, all sizes")
	s.StringVar(&cfg.gompirun, "gompirun", contest.Beside("gompirun"), "the launcher")
	s.StringVar(&cfg.bench, "bench", contest.Beside("gompi-bench"), "gompi's benchmark")
	s.StringVar(&cfg.csv, "csv", "", "file for every row of every round, behind a comment that names the machine")
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
		cfg.plan.Ops = everything
	}
	for _, op := range cfg.plan.Ops {
		if !slices.Contains(measure.Names(), op) {
			return cfg, fmt.Errorf("operation %q: want one of %s", op, strings.Join(measure.Names(), ", "))
		}
	}
	cfg.measured.Ops, cfg.measured.Sizes = cfg.plan.Ops, sizes
	cfg.plan.Rounds, cfg.plan.Limit = int(rounds), time.Duration(limit)
	cfg.plan.Args = []string{"-format", "csv", "-sizes", sizes.String(), "-type", element, "-redop", operator, "-budget", budget.String()}
	if cfg.measured.InPlace {
		cfg.plan.Args = append(cfg.plan.Args, "-inplace")
	}
	if cfg.measured.Dirty {
		cfg.plan.Args = append(cfg.plan.Args, "-dirty")
	}
	if file != "" && !s.Changed("peers") {
		peers = strings.Join(onHosts, ",")
	}
	return cfg, errors.Join(cfg.choose(peers, np), cfg.spread(file, rsh))
}

// spread reads the values of -hostfile and -rsh.
func (cfg *config) spread(file, rsh string) (err error) {
	if file == "" {
		if cfg.link.Rate > 0 {
			return fmt.Errorf("-link %v: want -hostfile, too", &cfg.link)
		}
		return nil
	}
	if cfg.hosts, err = contest.HostNames(file); err != nil {
		return err
	}
	if cfg.rsh = strings.Fields(rsh); len(cfg.rsh) == 0 {
		return fmt.Errorf("-rsh %q: want a command", rsh)
	}
	if cfg.gloo || cfg.ucx {
		return fmt.Errorf("peers %s and %s: want no -hostfile, they run on this machine only", gloo, ucx)
	}
	for _, np := range cfg.plan.NPs {
		if np%len(cfg.hosts) != 0 {
			return fmt.Errorf("-np %d on %d hosts: want as many ranks on each", np, len(cfg.hosts))
		}
	}
	return nil
}

// choose reads the values of -peers and -np.
func (cfg *config) choose(peers, np string) error {
	names := strings.Split(peers, ",")
	cfg.gloo, cfg.ucx = slices.Contains(names, gloo), slices.Contains(names, ucx)
	names = slices.DeleteFunc(names, func(name string) bool { return name == gloo || name == ucx })
	var errPeers, errNP, errUCX error
	cfg.peers, errPeers = contest.Find(names)
	if errPeers != nil {
		errPeers = fmt.Errorf("%w,%s,%s", errPeers, gloo, ucx)
	}
	cfg.plan.NPs, errNP = contest.Numbers("-np", np)
	if cfg.ucx && (np != "2" || !strings.HasPrefix(cfg.transport, overUCX) || cfg.measured.Dirty) {
		errUCX = errors.New("peer ucx: want -np 2, -transport ucx:NAMES for both, and no -dirty")
	}
	return errors.Join(errPeers, errNP, errUCX)
}
