package job

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gompi/comm"
	"gompi/examples/internal/nn"
)

// meters are a rank's sums since begin.
type meters struct {
	t       *trainer
	begin   time.Time
	sums    []float64 // of Spec.Meters
	samples int
	steps   int
	load    time.Duration // time for Load
	step    time.Duration // time for whole steps
	exposed time.Duration // ddp's Exposed at begin
}

func newMeters(t *trainer) meters {
	return meters{t: t, begin: time.Now(), sums: make([]float64, len(t.spec.Meters)), exposed: t.d.Stats().Exposed}
}

func (m *meters) add(sums []float64, samples int, load, step time.Duration) {
	for i, v := range sums {
		m.sums[i] += v
	}
	m.samples += samples
	m.steps++
	m.load += load
	m.step += step
}

// Results of means after the means of Spec.Meters: means over ranks of milliseconds per step.
const (
	meanStep = iota
	meanLoad
	meanExposed
	meanTimes
)

// means returns the means over the samples of all ranks, and times, by one allreduce.
func (m *meters) means(ctx context.Context) ([]float64, error) {
	n := len(m.sums)
	all := append(append([]float64{}, m.sums...), make([]float64, meanTimes+2)...)
	times := all[n:]
	times[meanStep] = 1e3 * m.step.Seconds()
	times[meanLoad] = 1e3 * m.load.Seconds()
	times[meanExposed] = 1e3 * (m.t.d.Stats().Exposed - m.exposed).Seconds()
	times[meanTimes], times[meanTimes+1] = float64(m.samples), float64(m.steps)
	if err := comm.Allreduce(ctx, m.t.c, all, all, comm.Sum); err != nil {
		return nil, err
	}
	samples, steps := times[meanTimes], times[meanTimes+1]
	for i := range n {
		all[i] /= samples
	}
	for i := range meanTimes {
		times[i] /= steps
	}
	return all[:n+meanTimes], nil
}

// texts formats the means.
func (t *trainer) texts(means []float64) string {
	var all []string
	for i, m := range t.spec.Meters {
		all = append(all, m.Name+" "+m.Show(means[i]))
	}
	return strings.Join(all, ", ")
}

// describe prints the data, the model and the batch.
func (t *trainer) describe(batch int) {
	numbers := 0
	for _, p := range t.m.Params() {
		numbers += len(p.Data)
	}
	fmt.Fprintf(t.out, "data: %d samples to train on, %d held out; model: %d parameters, %.1f KB of gradients\n",
		t.spec.Samples, t.spec.Held, numbers, float64(4*numbers)/1e3)
	if t.f.Eval {
		return
	}
	from, to := t.state.Position.Epoch+1, int64(t.f.Epochs)
	if from > to {
		fmt.Fprintf(t.out, "run: no epochs are left of %d\n", to)
		return
	}
	fmt.Fprintf(t.out, "run: epochs %d to %d of %d steps; a step has %d samples of all %d ranks, -batch %d per %s; compute goroutines of a rank: %d\n",
		from, to, t.sampler.Steps(), batch, t.c.Size(), t.f.Batch, t.f.BatchPer, nn.WorkersOf(t.c.Size()))
}

// showProgress prints a line within an epoch if one is due.
func (t *trainer) showProgress(ctx context.Context) error {
	if t.f.Every == 0 || t.state.Step%int64(t.f.Every) != 0 {
		return nil
	}
	means, err := t.lines.means(ctx)
	if err != nil {
		return err
	}
	t.lines = newMeters(t)
	times := means[len(t.spec.Meters):]
	fmt.Fprintf(t.out, "step %d: time %.2f ms, data %.2f ms, exposed communication %.2f ms, %s\n",
		t.state.Step, times[meanStep], times[meanLoad], times[meanExposed], t.texts(means))
	return nil
}

// showEpoch prints the line of an epoch. took is its time, without judging.
func (t *trainer) showEpoch(means []float64, took time.Duration) {
	line := fmt.Sprintf("epoch %d/%d: %s", t.state.Position.Epoch, t.f.Epochs, t.texts(means))
	if len(t.result.Held) > 0 {
		line += "; held out: " + t.texts(t.result.Held)
	}
	times := means[len(t.spec.Meters):]
	fmt.Fprintf(t.out, "%s; %.3f s, %.0f samples/s, step %.2f ms, of it data %.2f, exposed communication %.2f\n",
		line, took.Seconds(), float64(t.spec.Samples)/took.Seconds(), times[meanStep], times[meanLoad],
		times[meanExposed])
}
