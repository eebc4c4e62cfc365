package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

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
	if cfg.Hosts, err = shop.NewHosts(ctx, cfg.HostNames, cfg.RSH, cfg.NPs); err != nil {
		return err
	}
	res := results{cfg: cfg, record: contest.Begin(stderr)}
	if err := res.enter(ctx, shop); err != nil {
		return err
	}
	if err := res.record.Create(cfg.CSV); err != nil {
		return err
	}
	ended := res.measure(ctx, func(s report.Sample) error {
		fmt.Fprintf(stderr, "round %d of %d: %s, np=%d, %s: %s ms\n", s.Round, cfg.Rounds, s.Impl, s.NP, s.Op, millis(s.Median))
		return res.record.Sample(s)
	})
	return errors.Join(ended, res.record.End(), res.write(stdout), res.section().AddTo(cfg.HTML))
}

// enter finds out who is here, for both kinds of measurement, and who is not.
func (r *results) enter(ctx context.Context, shop *contest.Workshop) error {
	cfg := r.cfg
	env, dir := cfg.Env(), shop.Dir()
	r.comm = []contest.Entrant{contest.Gompi(cfg.Gompirun, cfg.Bench, env...)}
	r.steps = []contest.Entrant{contest.Gompi(cfg.Gompirun, cfg.steps, env...).WithArgs("-in", dir)}
	r.facts = append(r.facts, "gompi computes with gonum's BLAS "+gonum(cfg.steps)+", one goroutine for each rank")
	r.enterTorch(ctx, shop, env)
	if len(cfg.profiles) > 0 {
		here, absent := shop.EnterAll(ctx, cfg.libraries, "mpiddp")
		r.record.Absent = append(r.record.Absent, absent...)
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
		if _, err := write.Run(ctx, cfg.Limit); err != nil {
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
			r.record.Absent = append(r.record.Absent, fmt.Sprintf("%s: %v", name, err))
		}
		return
	}
	r.facts = append(r.facts, fmt.Sprintf("PyTorch %s computes with %s, one thread for each rank", torch.Version, torch.BLAS(ctx)))
	for _, name := range cfg.torch {
		backend := "gloo"
		if name == torchGompi {
			backend = "gompi"
			if err := torch.HasGompi(ctx); err != nil {
				r.record.Absent = append(r.record.Absent, fmt.Sprintf("%s: %v", name, err))
				continue
			}
		}
		comm := torch.DDP(cfg.Gompirun, name, "ddpcomm.py", backend, cfg.Hosts, env...).WithArgs("-tensors", tensorsIn(shop.Dir()))
		if name == torchUnsent {
			r.comm = append(r.comm, comm.WithArgs("--unsent"))
			continue
		}
		r.comm = append(r.comm, comm)
		r.steps = append(r.steps, torch.DDP(cfg.Gompirun, name, "ddpsteps.py", backend, cfg.Hosts, env...).WithArgs("-in", shop.Dir()))
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
func (r *results) measure(ctx context.Context, sample func(report.Sample) error) error {
	p := r.commPlan()
	if len(p.Ops) > 0 {
		if err := p.Run(ctx, r.comm, sample, r.record.Miss); err != nil {
			return err
		}
	}
	for _, model := range r.cfg.models {
		for _, np := range r.cfg.NPs {
			untimed := r.cfg.Plan // programs get no flags of timing
			entrants, err := agreed(ctx, untimed, r.steps, np, model, r.record.Miss)
			if err != nil {
				return err
			}
			if len(entrants) == 0 {
				continue
			}
			p := r.stepPlan(model)
			p.NPs = []int{np}
			if err := p.Run(ctx, entrants, sample, r.record.Miss); err != nil {
				return err
			}
		}
	}
	return nil
}

// commPlan and stepPlan say what is measured.
func (r *results) commPlan() contest.Plan {
	p := r.cfg.Plan
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
