package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gompi/examples/internal/job"
	"gompi/examples/train/internal/bytelm"
)

// A config is the command line. All ranks have the same.
type config struct {
	epochs, steps int           // 0: no limit
	maxTime       time.Duration // 0: no limit
	epochSamples  int           // samples of one epoch, of all ranks together; 0: the whole text
	batch         int           // samples of all ranks together
	accumulate    int           // backward passes per step
	rate          float64
	seed          uint64
	data          string
	snapshot      string
	saveEvery     int // epochs if epochs is set, else steps; 0: only at the end
	resume        bool
	evalOnly      bool
	every         int // steps between progress lines
	evalEvery     int // epochs or steps, like saveEvery; 0: only at the end
	keepBest      bool
	clipNorm      float64 // 0: gradients are not clipped
	scaleRate     string  // dependence of the rate on the batch: none, sqrt or linear
	csv, plot     string
	trace         string
	hook          string // of hookNames
	exact         int    // samples of a pass with exactly summed gradients; 0: averages
	overlap       bool
	device        string // host or cuda
	recover       string // reaction to the death of a rank: no, shrink or restore

	shape bytelm.Shape
}

// defaults make a run of about a minute on two cores.
func defaults() config {
	return config{
		epochSamples: 1 << 16, batch: 1024, accumulate: 1, rate: 0.01, seed: 1, resume: true, every: 10, overlap: true,
		device: "host", scaleRate: "none", hook: "none", recover: endWithRank,
		shape: bytelm.Shape{Context: 8, Width: 32, Hidden: []int{512, 256}},
	}
}

const defaultSteps = 500

// rateBatch is the batch for which -lr is given, from which -scale-lr scales.
const rateBatch = 1024

// defaultSnapshot is in the current folder, as is snapshot.pt in PyTorch's tutorial.
const defaultSnapshot = "train.snapshot"

const usage = `usage: train [flags] [EPOCHS [SAVE-EVERY]]

Trains a network to predict the next byte of a text. Alone, or under gompirun
with as many ranks as one likes: the batch is divided among them.
"train 50 10" trains for 50 epochs and saves to train.snapshot after every 10;
typed again, it goes on from there.

`

// parse parses the command line. Numbers may stand between the flags: "train 50 10" is "train
// -epochs 50 -save-every 10".
func parse(args []string, help io.Writer) (config, error) {
	cfg := defaults()
	fs := flag.NewFlagSet("train", flag.ContinueOnError)
	resume := cfg.define(fs)
	numbers, err := job.ParseMixed(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, usage)
		fs.SetOutput(help)
		fs.PrintDefaults()
	}
	if err != nil {
		return cfg, err
	}
	if err := job.Numbers(numbers, &cfg.epochs, &cfg.saveEvery); err != nil {
		return cfg, err
	}
	cfg.resume = *resume == "auto"
	if *resume != "auto" && *resume != "never" {
		return cfg, fmt.Errorf("-resume %q: want auto or never", *resume)
	}
	if cfg.epochs == 0 && cfg.steps == 0 && cfg.maxTime == 0 {
		cfg.steps = defaultSteps
	}
	if cfg.snapshot == "" && (cfg.evalOnly || cfg.saveEvery > 0 || cfg.keepBest) {
		cfg.snapshot = defaultSnapshot
	}
	return cfg, cfg.check()
}

func (cfg *config) define(fs *flag.FlagSet) (resume *string) {
	fs.IntVar(&cfg.epochs, "epochs", 0, "stop after this many epochs")
	fs.IntVar(&cfg.epochSamples, "epoch-samples", cfg.epochSamples,
		"samples of one epoch, of all ranks together; 0: the whole text")
	fs.IntVar(&cfg.steps, "steps", 0, fmt.Sprintf("stop after this many steps (default %d, or as many as -epochs needs)", defaultSteps))
	fs.DurationVar(&cfg.maxTime, "max-time", 0,
		"choose the last step so that all steps take about this long, as 30s; -steps and -epochs still limit them")
	fs.IntVar(&cfg.batch, "batch", cfg.batch, "samples of one step, of all ranks together")
	fs.IntVar(&cfg.accumulate, "accumulate", cfg.accumulate,
		"backward passes into which each rank divides its share of a batch")
	fs.Float64Var(&cfg.rate, "lr", cfg.rate, "learning rate after the warm-up")
	fs.StringVar(&cfg.scaleRate, "scale-lr", cfg.scaleRate,
		fmt.Sprintf("how -lr, which is for a batch of %d, follows -batch: none, linear, or sqrt for its square root", rateBatch))
	fs.Float64Var(&cfg.clipNorm, "clip-norm", 0,
		"scale gradients down to this norm, of all of them together, if theirs is larger; 0: never")
	fs.Uint64Var(&cfg.seed, "seed", cfg.seed, "seed of the first weights and of the order of samples")
	fs.StringVar(&cfg.data, "data", "", "folder of text files, read by rank 0 alone (default the source of the Go installation)")
	fs.StringVar(&cfg.snapshot, "snapshot", "",
		"file to save the training to and to resume it from, read and written by rank 0 alone\n(default "+
			defaultSnapshot+" with -save-every, -keep-best and -eval, else none)")
	fs.IntVar(&cfg.saveEvery, "save-every", 0,
		"save after this many epochs, or steps if -epochs is not given (default only at the end)")
	fs.IntVar(&cfg.evalEvery, "eval-every", 0,
		"judge the network by text held out after this many epochs, or steps if -epochs is not given (default only at the end)")
	fs.BoolVar(&cfg.keepBest, "keep-best", false,
		"save to -snapshot with .best added whenever -eval-every finds the network better than before")
	resume = fs.String("resume", "auto", "auto: go on from -snapshot if the file exists; never: start afresh")
	fs.BoolVar(&cfg.evalOnly, "eval", false, "only judge the network in -snapshot")
	fs.IntVar(&cfg.every, "print-every", cfg.every, "steps between lines of progress")
	fs.StringVar(&cfg.csv, "csv", "", "file for the lines of progress as comma-separated values")
	fs.StringVar(&cfg.plot, "plot", "", "file for the loss curve as a picture, .svg")
	fs.StringVar(&cfg.trace, "trace", "",
		"file for what every rank did when, as JSON for ui.perfetto.dev or chrome://tracing")
	fs.BoolVar(&cfg.overlap, "overlap", cfg.overlap,
		"average gradients while the backward pass computes; =false: after it")
	fs.StringVar(&cfg.hook, "hook", cfg.hook,
		"send gradients in fewer bytes: none, fp16, bf16, powersgd (rank 2, after a tenth of the steps) or topk (1 %)")
	fs.IntVar(&cfg.exact, "exact", 0, "compute in passes of this many samples and sum gradients exactly, so that any number of ranks\nends with the same network, bit by bit; 0: average them")
	fs.StringVar(&cfg.device, "device", cfg.device,
		"where to compute: host, or cuda for GPUs, which the ranks of a host take in turn")
	fs.StringVar(&cfg.recover, "recover", cfg.recover,
		"when a rank dies, under gompirun -recover: shrink, to go on with the others; restore, to go on with a new one in its place\n(-spares); or no")
	return resume
}

func (cfg *config) check() error {
	for _, n := range []struct {
		name      string
		got, want int
	}{
		{"epochs", cfg.epochs, 0}, {"epoch-samples", cfg.epochSamples, 0}, {"steps", cfg.steps, 0},
		{"batch", cfg.batch, 1},
		{"accumulate", cfg.accumulate, 1}, {"save-every", cfg.saveEvery, 0}, {"print-every", cfg.every, 1},
		{"eval-every", cfg.evalEvery, 0}, {"exact", cfg.exact, 0},
	} {
		if n.got < n.want {
			return fmt.Errorf("-%s %d: want at least %d", n.name, n.got, n.want)
		}
	}
	if cfg.maxTime < 0 {
		return fmt.Errorf("-max-time %v: want a duration such as 30s, or 0 for no limit", cfg.maxTime)
	}
	if cfg.maxTime > 0 && cfg.recovers() {
		return fmt.Errorf("-max-time with -recover %s: want one of them", cfg.recover)
	}
	if !(cfg.rate > 0) || math.IsInf(cfg.rate, 1) {
		return fmt.Errorf("-lr %v: want a positive, finite number", cfg.rate)
	}
	if !(cfg.clipNorm >= 0) || math.IsInf(cfg.clipNorm, 1) {
		return fmt.Errorf("-clip-norm %v: want a positive, finite number, or 0 for none", cfg.clipNorm)
	}
	if _, ok := scales[cfg.scaleRate]; !ok {
		return fmt.Errorf("-scale-lr %q: want none, linear or sqrt", cfg.scaleRate)
	}
	if cfg.keepBest && cfg.evalEvery == 0 {
		return errors.New("-keep-best without -eval-every: want both")
	}
	if cfg.plot != "" && !strings.HasSuffix(cfg.plot, ".svg") {
		return fmt.Errorf("-plot %q: want a name that ends with .svg", cfg.plot)
	}
	if err := cfg.checkAverage(); err != nil {
		return err
	}
	if err := cfg.checkRecover(); err != nil {
		return err
	}
	return cfg.checkDevice()
}

func (cfg *config) checkDevice() error {
	switch {
	case cfg.device == "host":
	case cfg.device != "cuda":
		return fmt.Errorf("-device %q: want host or cuda", cfg.device)
	case cfg.trace != "":
		return errors.New("-trace with -device cuda: want -device host")
	case cfg.clipNorm > 0:
		return errors.New("-clip-norm with -device cuda: want -device host")
	case cfg.hook != "none":
		return errors.New("-hook with -device cuda: want -device host")
	case cfg.exact > 0:
		return errors.New("-exact with -device cuda: want -device host")
	}
	return nil
}

// scales are the factors of the learning rate, by the batch over rateBatch.
var scales = map[string]func(ratio float64) float64{
	"none":   func(float64) float64 { return 1 },
	"linear": func(ratio float64) float64 { return ratio },
	"sqrt":   math.Sqrt,
}

// peakRate is the learning rate after the warm-up.
func (cfg *config) peakRate() float64 {
	return cfg.rate * scales[cfg.scaleRate](float64(cfg.batch)/rateBatch)
}
