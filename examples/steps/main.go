// Command steps makes training steps of a model whose first weights and batches are in a file, and
// prints the times of the parts of a step. Another program that reads the file can be compared,
// loss by loss and part by part: bench/peers/src/ddpsteps.py does that for PyTorch.
//
//	steps -write -in DIR mlp                    DIR/mlp.problem: weights and batches
//	gompirun -np 2 steps -losses -in DIR mlp    the losses of 20 steps
//	gompirun -np 2 steps -in DIR mlp            times, as CSV
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/version"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

// lossSteps is the number of losses that -losses prints.
const lossSteps = 20

// A config is the command line. All ranks have the same.
type config struct {
	dir, model    string
	write, losses bool
	version       bool
	rows          int // of a rank's batch
	impl          string
	budget        time.Duration
	busy          time.Duration
	bucket        int
}

func parse(args []string) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("steps", flag.ContinueOnError)
	fs.StringVar(&cfg.dir, "in", ".", "folder of the file, NAME.problem")
	fs.BoolVar(&cfg.write, "write", false, "make the file, and nothing else")
	fs.IntVar(&cfg.rows, "rows", 0, "with -write: samples of a rank's batch (default 64, of deep 8)")
	fs.BoolVar(&cfg.losses, "losses", false, fmt.Sprintf("print the losses of %d steps, and no times", lossSteps))
	fs.StringVar(&cfg.impl, "impl", "gompi", "first column of the rows")
	fs.DurationVar(&cfg.budget, "budget", 60*time.Millisecond, "how long to measure")
	fs.DurationVar(&cfg.busy, "busy", 0, "make backward so much longer, by matrix products")
	fs.IntVar(&cfg.bucket, "bucket", 25<<20, "most bytes of a bucket of gradients")
	format := fs.String("format", "csv", "of the rows")
	names := strings.Join(modelNames(), ", ")
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "usage: steps [flags] MODEL\n\nMODEL is one of %s.\n\n", names)
		fs.PrintDefaults()
	}
	fs.BoolVar(&cfg.version, "version", false, "print the version, and no more")
	if err := fs.Parse(args); err != nil || cfg.version {
		return cfg, err
	}
	if fs.NArg() != 1 || !slices.Contains(modelNames(), fs.Arg(0)) {
		return cfg, fmt.Errorf("models %q: want one of %s", fs.Args(), names)
	}
	switch cfg.model = fs.Arg(0); {
	case *format != "csv":
		return cfg, fmt.Errorf("-format %q: want csv", *format)
	case cfg.rows < 0 || cfg.rows > 0 && !cfg.write:
		return cfg, fmt.Errorf("-rows %d: want 1 or more, and -write", cfg.rows)
	case cfg.bucket < 1 || cfg.busy < 0 || cfg.budget < 0:
		return cfg, fmt.Errorf("-bucket %d, -busy %v, -budget %v: want no negative number, and a bucket of 1 or more",
			cfg.bucket, cfg.busy, cfg.budget)
	}
	return cfg, nil
}

func (cfg config) file() string { return filepath.Join(cfg.dir, cfg.model+".problem") }

func run(args []string, out io.Writer) error {
	cfg, err := parse(args)
	if err != nil {
		return err
	}
	if cfg.version {
		_, err := fmt.Fprintln(out, version.Text("steps"))
		return err
	}
	if cfg.write {
		return writeProblem(cfg.file(), cfg.model, cfg.rows)
	}
	ctx := context.Background() // gompirun ends the job; so does comm if a rank dies
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	if err := cfg.train(ctx, c, out); err != nil {
		return err
	}
	return c.Close(ctx)
}

// train makes the steps. All ranks call it; rank 0 prints.
func (cfg config) train(ctx context.Context, c *comm.Comm, out io.Writer) (err error) {
	p, err := readProblem(cfg.file())
	if err != nil {
		return err
	}
	if c.Rank() != 0 {
		out = io.Discard
	}
	t, err := newTrainer(ctx, c, p, ddp.Options{BucketBytes: cfg.bucket})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.d.Close(ctx)) }()
	if cfg.losses {
		return t.losses(ctx, out)
	}
	if t.busy, err = newBusy(ctx, c, p.params, cfg.busy); err != nil {
		return err
	}
	rows, err := t.measure(ctx, cfg.budget)
	if err != nil {
		return err
	}
	lines := []string{columns}
	for _, r := range rows {
		lines = append(lines, r.text(cfg.impl, cfg.model))
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
