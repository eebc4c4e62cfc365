package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/shapes"
	"gompi/internal/cli"
)

// A config is what the command line says.
type config struct {
	contest.Flags
	steps, python string               // paths
	torch         []string             // peers that run in PyTorch
	libraries     []contest.Competitor // peers that are MPI
	profiles      []shapes.Model       // whose communication alone is measured
	models        []string             // whose whole steps are
	rows          int                  // of a rank's batch, 0: the model's own
	busy          time.Duration
	bucket        cli.Size
	budget        cli.Duration
	set           *cli.Set
}

// The peers in PyTorch.
const (
	torchGompi  = "torch-gompi"
	torchGloo   = "torch-gloo"
	torchUnsent = "torch-unsent" // no competitor: what autograd and DDP's copies cost where nothing is sent
)

func inTorch() []string { return []string{torchGompi, torchGloo, torchUnsent} }

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
	var peers string
	s := cfg.set
	s.StringVar(&peers, "peers", "", "whom to compare with (default "+strings.Join(inTorch(), ",")+",openmpi; over TCP and on other hosts Open MPI's openmpi-tcp and openmpi-hosts)")
	cfg.Declare(s, "1,2,4", 2*time.Minute, "run may take: a model of one entrant")
	cfg.DeclareBench(s)
	s.IntVar(&cfg.rows, "rows", 0, "samples of a rank's batch in whole steps (default the model's own)")
	s.Var((*cli.Duration)(&cfg.busy), "busy", "make backward of whole steps so much longer, by matrix products")
	s.Var(&cfg.bucket, "bucket", "most bytes of a bucket of gradients in whole steps")
	s.Var(&cfg.budget, "budget", "how long a cell is timed for, if it takes no longer for 3 steps, or for 5 whole ones")
	s.StringVar(&cfg.steps, "steps", contest.Beside("steps"), "gompi's program that makes whole steps")
	s.StringVar(&cfg.python, "python", contest.Beside("torch/bin/python"), "a Python with PyTorch and gompi_torch")
	what, err := s.ParseAll(args)
	if err != nil {
		return cfg, err
	}
	if cfg.rows < 0 || cfg.bucket < 1 {
		return cfg, fmt.Errorf("-rows %d, -bucket %v: want no negative number, and a bucket of 1 or more", cfg.rows, &cfg.bucket)
	}
	return cfg, errors.Join(cfg.Read(), cfg.Even(), cfg.choose(peers), cfg.sort(what))
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

// choose reads the value of -peers.
func (cfg *config) choose(peers string) (err error) {
	if peers == "" {
		mpi := "openmpi"
		switch {
		case len(cfg.HostNames) > 0:
			mpi = "openmpi-hosts"
		case cfg.Transport == "tcp":
			mpi = "openmpi-tcp"
		}
		peers = strings.Join(append(inTorch(), mpi), ",")
	}
	cfg.libraries, cfg.torch, err = contest.Find(strings.Split(peers, ","), inTorch()...)
	return err
}
