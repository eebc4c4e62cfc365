package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
	"gompi/internal/cli"
)

// stepModels are the models of examples/steps. ddpModels are the default models; bert-base, which
// takes long, is not among them.
var (
	stepModels = []string{"mlp", "cnn", "deep"}
	ddpModels  = []string{"resnet18-cifar10", "resnet50", "recommender", "mlp", "cnn"}
)

// defaultBucket is the default of -bucket: the most bytes of a bucket of gradients.
const defaultBucket = 25 << 20

func profileNames() []string {
	var names []string
	for _, m := range measure.Models() {
		names = append(names, m.Name)
	}
	return names
}

func ddpUsage() string {
	return `usage: gompi-bench ddp [flags] [MODEL...]

Measures data-parallel training by gompi and its peers in turn, round after round. Of
` + strings.Join(profileNames(), ", ") + ` it measures the communication
alone: a step in which gradients of the model's sizes are averaged, and nothing is
computed. Of ` + strings.Join(stepModels, ", ") + ` it measures whole steps, with the same first weights and
the same batches, part by part; the losses of 20 steps must agree with gompi's first.
A ratio is the time of a peer, divided by gompi's. Cells that gompi loses are marked.

`
}

// A training is the command line of ddp.
type training struct {
	*options
	steps       string          // path of gompi's program for whole steps
	peers       []string        //
	profiles    []measure.Model // measured for their communication alone
	models      []string        // measured for whole steps
	busy        time.Duration
	bucket      byteSize
	budget      cli.Duration
	comm, whole []runner.Entrant // for each kind of measurement, gompi first
	conditions  []string         // about the programs
}

func parseDDP(args []string) (*training, error) {
	t := &training{options: newOptions("ddp",
		strings.Join([]string{peers.TorchGompi, peers.Gloo, peers.TorchUnsent, "openmpi", "openmpi-debian"}, ","),
		"1,2,4", 2*time.Minute, "run may take: a model of one entrant"), bucket: defaultBucket,
		budget: cli.Duration(100 * time.Millisecond)}
	s := t.set
	t.overTransport()
	s.Var((*cli.Duration)(&t.busy), "busy", "make backward of whole steps so much longer, by matrix products")
	s.Var(&t.bucket, "bucket", "most bytes of a bucket of gradients in whole steps")
	s.Var(&t.budget, "budget", "how long a cell is timed for, if it takes no longer for 3 steps, or for 5 whole ones")
	s.StringVar(&t.steps, "steps", "", "gompi's program that makes whole steps (default the one beside gompi-bench)")
	what, err := s.ParseAll(args)
	if err != nil {
		return t, err
	}
	t.steps = cmp.Or(t.steps, beside("steps"))
	if t.bucket < 1 {
		return t, fmt.Errorf("-bucket %v: want 1 or more", &t.bucket)
	}
	var errPeers error
	t.peers, errPeers = peers.Parse(t.peerList)
	return t, errors.Join(t.read(), t.even(), errPeers, t.sort(what))
}

// sort separates profiles from models of whole steps.
func (t *training) sort(what []string) error {
	if what == nil {
		what = ddpModels
	}
	for _, name := range what {
		i := slices.Index(profileNames(), name)
		switch {
		case slices.Contains(stepModels, name):
			t.models = append(t.models, name)
		case i >= 0:
			t.profiles = append(t.profiles, measure.Models()[i])
		default:
			return fmt.Errorf("model %q: want some of %s, %s", name, strings.Join(profileNames(), ", "),
				strings.Join(stepModels, ", "))
		}
	}
	return nil
}

func ddpMain(args []string, stdout, stderr io.Writer) int {
	t, err := parseDDP(args)
	return t.main(err, ddpUsage(), t.run, stdout, stderr)
}

// run measures and writes the report of all measured cells, also after an interrupt.
func (t *training) run(ctx context.Context, stdout, _ io.Writer) error {
	if err := t.On(ctx, t.hostNames, t.rshWords, t.NPs); err != nil {
		return err
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	return errors.Join(t.measure(ctx), t.report().Write(stdout, t.html))
}

// enter finds the available entrants of both kinds of measurement, and writes the files that all
// read.
func (t *training) enter(ctx context.Context) error {
	t.comm = []runner.Entrant{t.Gompi(nil, self(), "run")}
	if len(t.profiles) > 0 {
		if err := writeProfiles(t.Dir(), t.profiles); err != nil {
			return err
		}
		here, absent := t.Enter(ctx, t.peers,
			peers.Program{C: "mpiddp.c", Python: "ddpcomm.py", Args: []string{"-models", profilesIn(t.Dir())}})
		t.Absent = absent
		for _, e := range here {
			t.comm = append(t.comm, e)
			if strings.HasPrefix(e.Name, "openmpi") {
				t.comm = append(t.comm, e.With("-blocking").Called(e.Name+"-blocking"))
			}
		}
	}
	if len(t.models) == 0 {
		return nil
	}
	inTorch := slices.DeleteFunc(slices.Clone(t.peers),
		func(name string) bool { return name != peers.Gloo && name != peers.TorchGompi })
	in := []string{"-in", t.Dir()}
	here, absent := t.Enter(ctx, inTorch, peers.Program{Python: "ddpsteps.py", Args: in})
	if len(t.profiles) == 0 {
		t.Absent = absent
	}
	t.whole = append([]runner.Entrant{t.Gompi(nil, append([]string{t.steps}, in...)...)}, here...)
	t.conditions = append(t.conditions, "gompi computes with gonum's BLAS "+gonum(t.steps)+
		", one goroutine for each rank", t.BLAS(ctx))
	for _, model := range t.models {
		write := runner.Command{Args: []string{t.steps, "-write", "-in", t.Dir(), model}}
		if _, err := write.Run(ctx, t.Limit); err != nil {
			return fmt.Errorf("%v: %w (make build makes the program; -steps says where it is)", write, err)
		}
	}
	return nil
}

// gonum returns the version of gonum in a program.
func gonum(program string) string {
	if info, err := buildinfo.ReadFile(program); err == nil {
		for _, m := range info.Deps {
			if m.Path == "gonum.org/v1/gonum" {
				return m.Version
			}
		}
	}
	return "of unknown version"
}

// measure runs all rounds.
func (t *training) measure(ctx context.Context) error {
	var ops []string
	for _, m := range t.profiles {
		ops = append(ops, operation(m))
	}
	if err := t.Run(ctx, t.comm, ops, t.args()...); err != nil {
		return err
	}
	nps := t.NPs
	defer func() { t.NPs = nps }()
	for _, model := range t.models {
		for _, np := range nps {
			agreed, err := t.agreed(ctx, np, model)
			if err != nil {
				return err
			}
			t.NPs = []int{np}
			if err := t.Run(ctx, agreed, []string{model}, t.stepArgs()...); err != nil {
				return err
			}
		}
	}
	return nil
}

// args and stepArgs are the flags for all programs.
func (t *training) args() []string { return []string{"-format", "csv", "-budget", t.budget.String()} }

func (t *training) stepArgs() []string {
	args := append(t.args(), "-bucket", strconv.Itoa(int(t.bucket)))
	if t.busy > 0 {
		args = append(args, "-busy", strconv.FormatInt(t.busy.Milliseconds(), 10)+"ms")
	}
	return args
}
