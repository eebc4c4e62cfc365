package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/job"
)

// A point is a line of progress: means over the steps since the last line and over all ranks.
type point struct {
	step    int64
	loss    float64 // bits per byte, on the training batches
	speed   float64 // samples of all ranks per second
	compute float64 // milliseconds per step
	exposed float64 // milliseconds per step that waited for communication
}

// A progress collects a rank's figures and prints their means on rank 0.
type progress struct {
	t           *trainer
	out         io.Writer
	csv         io.WriteCloser // nil: not wanted, or not rank 0
	trace       io.WriteCloser // the same
	points      []point
	evaluations []evaluation
	first       int64     // the last step before this run
	start       time.Time // and its begin

	// since the last line
	loss    float64
	samples int
	busy    time.Duration
	exposed time.Duration // ddp's clock at the last line
	steps   int
	begin   time.Time
}

// newProgress returns the progress of a training that continues after k.
func newProgress(ctx context.Context, t *trainer, out io.Writer, k *kept) (*progress, error) {
	now := time.Now()
	p := &progress{t: t, out: out, points: k.points, evaluations: k.evaluations,
		first: t.state.Step, start: now, begin: now, exposed: t.d.Stats().Exposed}
	return p, ddp.OnRankZero(ctx, t.c, p.createFiles)
}

// createFiles creates the files, or checks whether they can be created at the end, so that a wrong
// name does not cost the training.
func (p *progress) createFiles() (err error) {
	if err := job.CheckFile("plot", p.t.cfg.plot); err != nil {
		return err
	}
	if !p.t.cfg.evalOnly {
		if err := job.CheckFile("snapshot", p.t.cfg.snapshot); err != nil {
			return err
		}
	}
	if name := p.t.cfg.trace; name != "" {
		if p.trace, err = os.Create(name); err != nil {
			return err
		}
	}
	if name := p.t.cfg.csv; name != "" {
		if p.csv, err = os.Create(name); err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.csv, "step,bits_per_byte,samples_per_s,compute_ms,exposed_ms")
		for _, pt := range p.points {
			err = errors.Join(err, p.row(pt))
		}
	}
	return err
}

// evaluated prints and keeps an evaluation. Its time does not count for the speed of training.
func (p *progress) evaluated(e evaluation, took time.Duration) {
	p.evaluations = append(p.evaluations, e)
	fmt.Fprintf(p.out, "step %5d/%d  held out: %.3f bits/byte, accuracy %.1f %%\n", e.step, p.t.last, e.loss,
		100*e.accuracy)
	p.begin = p.begin.Add(took)
}

// hasEvaluated reports whether the last evaluation was after step.
func (p *progress) hasEvaluated(step int64) bool {
	n := len(p.evaluations)
	return n > 0 && p.evaluations[n-1].step == step
}

// add notes a step of this rank.
func (p *progress) add(loss float64, samples int, took time.Duration) {
	p.loss += loss
	p.samples += samples
	p.busy += took
	p.steps++
}

// after prints a line if one is due.
func (p *progress) after(ctx context.Context) error {
	step := p.t.state.Step
	if step%int64(p.t.cfg.every) != 0 && step != p.t.last {
		return nil
	}
	pt, err := p.mean(ctx)
	if err != nil {
		return err
	}
	p.points = append(p.points, pt)
	if p.t.cfg.maxTime > 0 {
		if err := p.chooseLast(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.out, "step %5d/%d  %.3f bits/byte  %7.0f samples/s  compute %6.2f ms  exposed communication %5.2f ms  %s left\n",
		pt.step, p.t.last, pt.loss, pt.speed, pt.compute, pt.exposed, p.left())
	if p.csv == nil {
		return nil
	}
	return p.row(pt)
}

// row writes a point to the table.
func (p *progress) row(pt point) error {
	_, err := fmt.Fprintf(p.csv, "%d,%.5f,%.1f,%.3f,%.3f\n", pt.step, pt.loss, pt.speed, pt.compute, pt.exposed)
	return err
}

// mean returns the point of the steps since the last one.
func (p *progress) mean(ctx context.Context) (pt point, err error) {
	exposed := p.t.d.Stats().Exposed
	waited := exposed - p.exposed
	for _, m := range []struct {
		dst *float64
		sum float64
		n   int
	}{
		{&pt.loss, p.loss / math.Ln2, p.samples},
		{&pt.compute, 1e3 * (p.busy - waited).Seconds(), p.steps},
		{&pt.exposed, 1e3 * waited.Seconds(), p.steps},
	} {
		if *m.dst, err = ddp.Mean(ctx, p.t.c, m.sum, m.n); err != nil {
			return pt, err
		}
	}
	now := time.Now()
	pt.step = p.t.state.Step
	pt.speed = float64(p.steps*p.t.cfg.batch) / now.Sub(p.begin).Seconds()
	p.loss, p.samples, p.busy, p.steps = 0, 0, 0, 0
	p.exposed, p.begin = exposed, now
	return pt, nil
}

// chooseLast sets the last step by the mean time of this run's steps on rank 0, so that they take
// -max-time.
func (p *progress) chooseLast(ctx context.Context) error {
	took := time.Since(p.start)
	last := []int64{p.t.state.Step}
	if rest := p.t.cfg.maxTime - took; rest > 0 {
		last[0] += int64(float64(p.t.state.Step-p.first) * float64(rest) / float64(took))
	}
	if err := comm.Bcast(ctx, p.t.c, 0, last); err != nil {
		return err
	}
	p.t.last = min(p.t.lastStep(), last[0])
	return nil
}

// left estimates the time of the remaining steps, at the mean speed of this run.
func (p *progress) left() time.Duration {
	done, rest := p.t.state.Step-p.first, p.t.last-p.t.state.Step
	took := time.Since(p.start).Seconds() / float64(done)
	return time.Duration(took * float64(rest) * float64(time.Second)).Round(time.Second)
}

// finish closes the files and draws the curve.
func (p *progress) finish(ctx context.Context, res *result) error {
	if p.t.cfg.trace != "" {
		if err := p.t.d.WriteTrace(ctx, p.trace); err != nil {
			return err
		}
	}
	return ddp.OnRankZero(ctx, p.t.c, func() error {
		if err := p.closeFiles(); err != nil {
			return err
		}
		if p.t.cfg.plot == "" {
			return nil
		}
		return draw(p.t.cfg.plot, res)
	})
}

// closeFiles closes the open files.
func (p *progress) closeFiles() (err error) {
	for _, f := range []*io.WriteCloser{&p.csv, &p.trace} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
		}
		*f = nil
	}
	return err
}
