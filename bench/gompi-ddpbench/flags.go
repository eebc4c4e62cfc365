package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/limits"
	"gompi/bench/internal/shapes"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	gompirun, bench, steps, python string               // paths
	torch                          []string             // peers that run in PyTorch
	libraries                      []contest.Competitor // peers that are MPI
	transport                      string
	csv, html                      string   // files
	hosts, rsh                     []string // other hosts to run on, and the command that logs in
	link                           limits.LinkFlag
	profiles                       []shapes.Model // whose communication alone is measured
	models                         []string       // whose whole steps are
	rows                           int            // of a rank's batch, 0: the model's own
	busy                           time.Duration
	bucket                         cli.Size
	budget                         cli.Duration
	plan                           contest.Plan // its rounds, numbers of ranks and limit
	set                            *cli.Set
}

// The peers in PyTorch.
const (
	torchGompi  = "torch-gompi"
	torchGloo   = "torch-gloo"
	torchUnsent = "torch-unsent" // no competitor: what autograd and DDP's copies cost where nothing is sent
)

// ours names comm/ddp.
const ours = "gompi"

// defaultBucket is the most bytes of a bucket of gradients, where nothing else is said.
const defaultBucket = 25 << 20

// stepModels are the models of examples/steps.
func stepModels() []string { return []string{"mlp", "cnn", "deep"} }

func profileNames() []string {
	var names []string
	for _, m := range shapes.All() {
		names = append(names, m.Name)
	}
	return names
}

// everything is what is measured if nothing is named. bert-base takes long.
var everything = []string{"resnet18-cifar10", "resnet50", "recommender", "mlp", "cnn"}

func usage() string {
	return `usage: gompi-ddpbench [flags] [MODEL...]

Measures data-parallel training by gompi and its peers in turn, round after round. Of
` + strings.Join(profileNames(), ", ") + ` it measures the communication
alone: a step in which gradients of the model's sizes are averaged, and nothing is
computed. Of ` + strings.Join(stepModels(), ", ") + ` it measures whole steps, with the same first weights and
the same batches, part by part; the losses of 20 steps must agree with gompi's first.
A ratio is the time of a peer, divided by gompi's. Cells that gompi loses are marked.
With -hostfile it measures on other hosts, which have the same files.

`
}

// parse reads the command line. Models may stand between the flags. The config has its set also
// after an error.
func parse(args []string) (config, error) {
	cfg := config{set: cli.New("gompi-ddpbench"), bucket: defaultBucket, budget: cli.Duration(100 * time.Millisecond)}
	rounds, limit, busy := cli.Count(5), cli.Duration(2*time.Minute), cli.Duration(0)
	var peers, np, file, rsh string
	s := cfg.set
	s.StringVar(&peers, "peers", "", "whom to compare with (default "+strings.Join([]string{torchGompi, torchGloo, torchUnsent}, ",")+",openmpi; over TCP and on other hosts Open MPI's openmpi-tcp and openmpi-hosts)")
	s.StringVar(&np, "np", "1,2,4", "numbers of ranks")
	s.Var(&rounds, "rounds", "how often everything is measured")
	s.IntVar(&cfg.rows, "rows", 0, "samples of a rank's batch in whole steps (default the model's own)")
	s.Var(&busy, "busy", "make backward of whole steps so much longer, by matrix products")
	s.Var(&cfg.bucket, "bucket", "most bytes of a bucket of gradients in whole steps")
	s.StringVar(&file, "hostfile", "", "other hosts to run on; ranks are dealt out evenly")
	s.StringVar(&rsh, "rsh", "ssh", "the command that logs in to them")
	s.Var(&cfg.link, "link", limits.LinkUsage)
	s.StringVar(&cfg.transport, "transport", "", "what gompi is to use (default its own choice)")
	s.Var(&cfg.budget, "budget", "how long a cell is timed for, if it takes no longer for 3 steps, or for 5 whole ones")
	s.Var(&limit, "limit", "how long one run may take: a model of one entrant")
	s.StringVar(&cfg.gompirun, "gompirun", contest.Beside("gompirun"), "the launcher")
	s.StringVar(&cfg.bench, "bench", contest.Beside("gompi-bench"), "gompi's benchmark")
	s.StringVar(&cfg.steps, "steps", contest.Beside("steps"), "gompi's program that makes whole steps")
	s.StringVar(&cfg.python, "python", contest.Beside("torch/bin/python"), "a Python with PyTorch and gompi_torch")
	s.StringVar(&cfg.csv, "csv", "", "file for every row of every round, behind a comment that names the machine")
	s.StringVar(&cfg.html, "html", "", "page with plots to add the medians to; made if there is none")
	var what []string
	for len(args) > 0 {
		rest, err := s.Parse(args)
		if err != nil {
			return cfg, err
		}
		if len(rest) > 0 {
			what, rest = append(what, rest[0]), rest[1:]
		}
		args = rest
	}
	cfg.plan.Rounds, cfg.plan.Limit, cfg.busy = int(rounds), time.Duration(limit), time.Duration(busy)
	if cfg.rows < 0 || cfg.bucket < 1 {
		return cfg, fmt.Errorf("-rows %d, -bucket %v: want no negative number, and a bucket of 1 or more", cfg.rows, &cfg.bucket)
	}
	var errNP error
	cfg.plan.NPs, errNP = contest.Numbers("-np", np)
	return cfg, errors.Join(errNP, cfg.spread(file, rsh), cfg.choose(peers), cfg.sort(what))
}

// sort tells profiles from models of whole steps.
func (cfg *config) sort(what []string) error {
	if what == nil {
		what = everything
	}
	for _, name := range what {
		i := slices.Index(profileNames(), name)
		switch {
		case slices.Contains(stepModels(), name):
			cfg.models = append(cfg.models, name)
		case i >= 0:
			cfg.profiles = append(cfg.profiles, shapes.All()[i])
		default:
			return fmt.Errorf("model %q: want some of %s, %s", name, strings.Join(profileNames(), ", "), strings.Join(stepModels(), ", "))
		}
	}
	return nil
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
	for _, np := range cfg.plan.NPs {
		if np%len(cfg.hosts) != 0 {
			return fmt.Errorf("-np %d on %d hosts: want as many ranks on each", np, len(cfg.hosts))
		}
	}
	return nil
}

// choose reads the value of -peers.
func (cfg *config) choose(peers string) error {
	if peers == "" {
		mpi := "openmpi"
		switch {
		case len(cfg.hosts) > 0:
			mpi = "openmpi-hosts"
		case cfg.transport == "tcp":
			mpi = "openmpi-tcp"
		}
		peers = strings.Join([]string{torchGompi, torchGloo, torchUnsent, mpi}, ",")
	}
	var others []string
	for name := range strings.SplitSeq(peers, ",") {
		switch {
		case !slices.Contains([]string{torchGompi, torchGloo, torchUnsent}, name):
			others = append(others, name)
		case slices.Contains(cfg.torch, name):
			return fmt.Errorf("peer %q is named twice", name)
		default:
			cfg.torch = append(cfg.torch, name)
		}
	}
	var err error
	if cfg.libraries, err = contest.Find(others); err != nil {
		err = fmt.Errorf("%w,%s,%s,%s", err, torchGompi, torchGloo, torchUnsent)
	}
	return err
}
