package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// A trainer is one rank's part of the training.
type trainer struct {
	*problem
	c    *comm.Comm
	d    *ddp.DDP
	sgd  *nn.SGD
	busy *busy
	step int // number of the next step
}

func newTrainer(ctx context.Context, c *comm.Comm, p *problem, opts ddp.Options) (*trainer, error) {
	d, err := ddp.New(ctx, c, p.params, opts)
	if err != nil {
		return nil, err
	}
	return &trainer{problem: p, c: c, d: d, sgd: nn.NewSGD(p.params, float32(p.Momentum), 0)}, nil
}

// forward returns the loss of the step's batch, summed over its samples, and the gradient of their
// mean by the output.
func (t *trainer) forward() (loss float64, dy nn.Matrix) {
	b := t.batchOf(t.step, t.c.Rank(), t.c.Size())
	y := t.stack.Forward(b.inputs)
	return nn.CrossEntropy(y, b.classes, 1/float32(t.Rows)), y
}

// update steps along the gradients and clears them.
func (t *trainer) update() {
	t.sgd.Step(t.Rate)
	t.d.ZeroGrad()
	t.step++
}

// losses prints the losses of the first steps, each the mean over the samples of all ranks.
func (t *trainer) losses(ctx context.Context, out io.Writer) error {
	for i := range lossSteps {
		loss, dy := t.forward()
		t.stack.Backward(dy, t.d.Ready)
		if err := t.d.Finish(ctx); err != nil {
			return err
		}
		t.update()
		mean, err := ddp.Mean(ctx, t.c, loss, t.Rows)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "loss %d %.9g\n", i+1, mean)
	}
	return nil
}

// The timed parts of a step.
const (
	forwardPart   = iota
	backwardPart  // alone: nothing is averaged
	bothPart      // with the averages
	optimiserPart // with clearing gradients
	stepPart      // the whole step
	commPart      // the averages alone
	parts
)

// warmUps is the number of steps before the first timed one, leastSteps the least number of timed
// steps.
const (
	warmUps    = 3
	leastSteps = 5
)

// times are the nanoseconds of each part of a step.
type times [parts]int64

// measure times steps until the budget is spent. Rank 0 gets a row for each part: the median over
// the steps of the slowest rank's time.
func (t *trainer) measure(ctx context.Context, budget time.Duration) ([]row, error) {
	var all []times
	var spent int64
	for len(all) < warmUps+leastSteps || time.Duration(spent) < budget {
		start := time.Now()
		one, err := t.one(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		took := []int64{int64(time.Since(start))}
		if err := comm.Allreduce(ctx, t.c, took, took, comm.Max); err != nil {
			return nil, err
		}
		if len(all) > warmUps {
			spent += took[0]
		}
	}
	return t.rows(ctx, all[warmUps:])
}

// one makes a step with its times, then backward without averages, then averages alone. A barrier
// precedes each of them.
func (t *trainer) one(ctx context.Context) (took times, err error) {
	if err := t.c.Barrier(ctx); err != nil {
		return took, err
	}
	clock := time.Now()
	lap := func() int64 {
		d := time.Since(clock)
		clock = clock.Add(d)
		return int64(d)
	}
	_, dy := t.forward()
	took[forwardPart] = lap()
	t.stack.Backward(dy, func(i int) { t.busy.before(i); t.d.Ready(i) })
	if err := t.d.Finish(ctx); err != nil {
		return took, err
	}
	took[bothPart] = lap()
	t.update()
	took[optimiserPart] = lap()
	took[stepPart] = took[forwardPart] + took[bothPart] + took[optimiserPart]

	_, dy = t.forward()
	if err := t.c.Barrier(ctx); err != nil {
		return took, err
	}
	lap()
	t.stack.Backward(dy, t.busy.before)
	took[backwardPart] = lap()
	if err := t.c.Barrier(ctx); err != nil {
		return took, err
	}
	lap()
	for i := range slices.Backward(t.params) {
		t.d.Ready(i)
	}
	err = t.d.Finish(ctx)
	took[commPart] = lap()
	t.d.ZeroGrad()
	return took, err
}

// rows returns a row for each part, and for the communication that backward does not hide: a
// backward with averages, less the following backward alone. Noise may make this negative.
func (t *trainer) rows(ctx context.Context, all []times) ([]row, error) {
	flat := make([]int64, 0, parts*len(all))
	for part := range parts {
		for _, one := range all {
			flat = append(flat, one[part])
		}
	}
	if err := comm.Allreduce(ctx, t.c, flat, flat, comm.Max); err != nil {
		return nil, err
	}
	bytes := 0
	for _, p := range t.params {
		bytes += 4 * len(p.Data)
	}
	of := func(part int) []int64 { return flat[part*len(all):][:len(all)] }
	exposed := slices.Clone(of(bothPart))
	for i, alone := range of(backwardPart) {
		exposed[i] -= alone
	}
	newRow := func(part string, ns []int64) row {
		slices.Sort(ns)
		return row{part: part, np: t.c.Size(), bytes: bytes, times: ns}
	}
	return []row{
		newRow("forward", of(forwardPart)), newRow("backward", of(backwardPart)), newRow("exposed", exposed),
		newRow("optimiser", of(optimiserPart)), newRow("step", of(stepPart)), newRow("comm", of(commPart)),
	}, nil
}

// A row is the times of a part on the steps' slowest ranks, ascending, in nanoseconds.
type row struct {
	part      string
	np, bytes int
	times     []int64
}

// columns are the columns of gompi-bench run -format csv.
const columns = "impl,op,np,bytes,usec_median,usec_min,usec_p99,iters,usec_b2b,algbw_gbps,busbw_gbps"

// text returns r as these columns.
func (r row) text(impl, model string) string {
	usec := func(q float64) float64 {
		return float64(r.times[max(int(math.Ceil(q*float64(len(r.times))))-1, 0)]) / 1e3
	}
	return fmt.Sprintf("%s,%s/%s,%d,%d,%.3f,%.3f,%.3f,%d,0,0,0", impl, model, r.part, r.np, r.bytes, usec(0.5), usec(0),
		usec(0.99), len(r.times))
}
