package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// compare measures, with a line of progress for each cell on stderr, and writes the report of what
// it has measured, also if it was interrupted.
func (cfg config) compare(ctx context.Context, stdout, stderr io.Writer) error {
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	if len(cfg.hosts) > 0 {
		if cfg.plan.Hosts, err = shop.NewHosts(ctx, cfg.hosts, cfg.rsh, cfg.plan.NPs); err != nil {
			return err
		}
	}
	res := results{cfg: cfg, began: time.Now(), load: contest.Load()}
	if err := res.enter(ctx, shop); err != nil {
		return err
	}
	raw, err := contest.CreateRaw(cfg.csv)
	if err != nil {
		return err
	}
	sample := func(s report.Sample) error {
		res.samples = append(res.samples, s)
		fmt.Fprintf(stderr, "round %d of %d: %s, np=%d, %s: %s ms\n", s.Round, cfg.plan.Rounds, s.Impl, s.NP, s.Op, millis(s.Median))
		return raw.Write(s)
	}
	miss := func(m contest.Miss) {
		res.misses = append(res.misses, m)
		fmt.Fprintln(stderr, m)
	}
	ended := res.measure(ctx, shop.Dir(), sample, miss)
	res.took = time.Since(res.began)
	res.load = max(res.load, contest.Load())
	ended = errors.Join(ended, raw.Close(), res.write(stdout))
	if cfg.html != "" {
		ended = errors.Join(ended, res.section().AddTo(cfg.html))
	}
	return ended
}

// enter finds out who is here, for both kinds of measurement, and who is not.
func (r *results) enter(ctx context.Context, shop *contest.Workshop) error {
	cfg := r.cfg
	var env []string
	if cfg.transport != "" {
		env = []string{"GOMPI_TRANSPORT=" + cfg.transport}
	}
	dir := shop.Dir()
	r.comm = []contest.Entrant{contest.Gompi(cfg.gompirun, cfg.bench, env...)}
	r.steps = []contest.Entrant{contest.Gompi(cfg.gompirun, cfg.steps, env...).WithArgs("-in", dir)}
	r.facts = append(r.facts, "gompi computes with gonum's BLAS "+gonum(cfg.steps)+", one goroutine for each rank")
	r.enterTorch(ctx, shop, env)
	if len(cfg.profiles) > 0 {
		here, absent := shop.EnterAll(ctx, cfg.libraries, "mpiddp")
		r.absent = append(r.absent, absent...)
		for _, e := range here {
			e = e.WithArgs("-buckets", bucketsIn(dir))
			blocking := e.WithArgs("-impl", e.Name+"-blocking", "-blocking")
			blocking.Name += "-blocking"
			r.comm = append(r.comm, e.WithArgs("-impl", e.Name), blocking)
		}
	}
	if err := writeProfiles(dir, cfg.profiles); err != nil {
		return err
	}
	for _, model := range cfg.models {
		write := contest.Command{Args: []string{cfg.steps, "-write", "-rows", strconv.Itoa(cfg.rows), "-in", dir, model}}
		if _, err := write.Run(ctx, cfg.plan.Limit); err != nil {
			return fmt.Errorf("%v: %w (make build makes the program; -steps says where it is)", write, err)
		}
	}
	return nil
}

// enterTorch adds the peers in PyTorch.
func (r *results) enterTorch(ctx context.Context, shop *contest.Workshop, env []string) {
	cfg := r.cfg
	if len(cfg.torch) == 0 {
		return
	}
	torch, err := shop.Torch(ctx, cfg.python)
	if err != nil {
		for _, name := range cfg.torch {
			r.absent = append(r.absent, fmt.Sprintf("%s: %v", name, err))
		}
		return
	}
	r.facts = append(r.facts, fmt.Sprintf("PyTorch %s computes with %s, one thread for each rank", torch.Version, torch.BLAS(ctx)))
	for _, name := range cfg.torch {
		backend := "gloo"
		if name == torchGompi {
			backend = "gompi"
			if err := torch.HasGompi(ctx); err != nil {
				r.absent = append(r.absent, fmt.Sprintf("%s: %v", name, err))
				continue
			}
		}
		comm := torch.DDP(cfg.gompirun, name, "ddpcomm.py", backend, cfg.plan.Hosts, env...).WithArgs("-tensors", tensorsIn(shop.Dir()))
		if name == torchUnsent {
			r.comm = append(r.comm, comm.WithArgs("--unsent"))
			continue
		}
		r.comm = append(r.comm, comm)
		r.steps = append(r.steps, torch.DDP(cfg.gompirun, name, "ddpsteps.py", backend, cfg.plan.Hosts, env...).WithArgs("-in", shop.Dir()))
	}
}

// gonum returns the version of gonum that a program was built with.
func gonum(program string) string {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "of unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == "gonum.org/v1/gonum" {
			return m.Version
		}
	}
	return "of unknown version"
}

// measure runs all rounds.
func (r *results) measure(ctx context.Context, dir string, sample func(report.Sample) error, miss func(contest.Miss)) error {
	p := r.commPlan()
	if len(p.Ops) > 0 {
		if err := p.Run(ctx, r.comm, sample, miss); err != nil {
			return err
		}
	}
	for _, model := range r.cfg.models {
		for _, np := range r.cfg.plan.NPs {
			untimed := r.cfg.plan // programs get no flags of timing
			entrants, err := agreed(ctx, untimed, r.steps, np, model, miss)
			if err != nil {
				return err
			}
			if len(entrants) == 0 {
				continue
			}
			p := r.stepPlan(model)
			p.NPs = []int{np}
			if err := p.Run(ctx, entrants, sample, miss); err != nil {
				return err
			}
		}
	}
	return nil
}

// commPlan and stepPlan say what is measured.
func (r *results) commPlan() contest.Plan {
	p := r.cfg.plan
	p.Args = []string{"-format", "csv", "-budget", r.cfg.budget.String()}
	for _, m := range r.cfg.profiles {
		p.Ops = append(p.Ops, operation(m))
	}
	return p
}

func (r *results) stepPlan(model string) contest.Plan {
	p := r.commPlan()
	p.Ops = []string{model}
	p.Args = slices.Concat(p.Args, []string{"-bucket", strconv.Itoa(int(r.cfg.bucket))})
	if r.cfg.busy > 0 {
		p.Args = append(p.Args, "-busy", strconv.FormatInt(r.cfg.busy.Milliseconds(), 10)+"ms")
	}
	return p
}
