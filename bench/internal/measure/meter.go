package measure

import (
	"slices"
	"time"

	"gompi/bench/internal/result"
	"gompi/comm"
)

const (
	// Impl names this implementation in rows.
	Impl = "gompi"

	// warmUps is the number of calls before the first timed one. After so many no known peer still
	// changes its algorithm. Above bigBytes it is fewWarmUps: calls take long there, and all but
	// the first take the same time.
	warmUps    = 8
	fewWarmUps = 3

	// Iterations of a cell: at least leastIters, or fewLeast above bigBytes, where each takes long;
	// at most mostIters, which bounds the memory for their times.
	leastIters = 5
	fewLeast   = 3
	bigBytes   = 16 << 20
	mostIters  = 1 << 17

	// growth bounds the ratio of a batch's length to the number of earlier iterations, since later
	// iterations may take longer than these.
	growth = 8
)

// A meter times cells.
type meter struct {
	cell
	o      Options
	budget time.Duration
	times  []int64 // nanoseconds of each iteration, on this rank
}

// measure checks and times the bound cell. Only rank 0 gets the Row.
func (m *meter) measure() (result.Row, error) {
	if err := m.prepare(); err != nil {
		return result.Row{}, err
	}
	if err := m.hook(m.op.begin); err != nil {
		return result.Row{}, err
	}
	b2b, err := m.calls()
	if err != nil {
		return result.Row{}, err
	}
	if err := m.hook(m.op.end); err != nil {
		return result.Row{}, err
	}
	slowest := make([]int64, len(m.times))
	if err := comm.Reduce(m.ctx, m.c, 0, m.times, slowest, comm.Max); err != nil {
		return result.Row{}, err
	}
	return m.row(slowest, b2b), nil
}

func (m *meter) hook(f func(k *cell) error) error {
	if f == nil {
		return nil
	}
	return f(&m.cell)
}

// calls checks a call, then times calls with barriers, and then without.
func (m *meter) calls() (b2b float64, err error) {
	if m.o.Check {
		if err := m.check(); err != nil {
			return 0, err
		}
	}
	for range m.atLeast(fewWarmUps, warmUps) {
		if _, err := m.iteration(); err != nil {
			return 0, err
		}
	}
	if err := m.sample(); err != nil {
		return 0, err
	}
	return m.backToBack()
}

// iteration is a barrier and a timed call. It returns the duration of the call in nanoseconds, or 0
// on a rank whose time does not count.
func (m *meter) iteration() (int64, error) {
	if err := m.c.Barrier(m.ctx); err != nil {
		return 0, err
	}
	if m.op.before != nil {
		m.op.before()
	}
	start := time.Now()
	err := m.op.run(&m.cell)
	took := int64(time.Since(start))
	if !m.counts() {
		took = 0
	}
	return took, err
}

// counts reports whether this rank's clock counts.
func (m *meter) counts() bool { return m.op.timed == nil || m.op.timed(m.rank, m.np) }

// sample times iterations until the budget is spent, in batches: after each batch the ranks agree
// on its duration, and so on the length of the next.
func (m *meter) sample() error {
	if m.times == nil {
		m.times = make([]int64, 0, mostIters)
	}
	m.times = m.times[:0]
	var spent time.Duration
	for batch := m.atLeast(fewLeast, leastIters); batch > 0; batch = nextBatch(len(m.times), spent, m.budget) {
		start := time.Now()
		for range batch {
			took, err := m.iteration()
			if err != nil {
				return err
			}
			m.times = append(m.times, took)
		}
		took, err := m.agree(int64(time.Since(start)))
		if err != nil {
			return err
		}
		spent += time.Duration(max(took, 1))
	}
	return nil
}

// atLeast returns the least number of iterations of a cell: few for big vectors.
func (m *meter) atLeast(few, many int) int {
	if m.n*m.o.Type.Size() > bigBytes {
		return few
	}
	return many
}

// nextBatch returns the length of the next batch, so that all iterations take about budget; 0 if
// the budget is spent.
func nextBatch(done int, spent, budget time.Duration) int {
	if spent >= budget {
		return 0
	}
	more := int(float64(done) * float64(budget-spent) / float64(spent))
	if more > growth*done {
		more = growth * done
	}
	return min(more, mostIters-done)
}

// backToBack returns the mean nanoseconds of a number of calls without barriers. For operations
// with a before hook it returns 0.
func (m *meter) backToBack() (float64, error) {
	if m.op.before != nil {
		return 0, nil
	}
	if err := m.c.Barrier(m.ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	for range m.times {
		if err := m.op.run(&m.cell); err != nil {
			return 0, err
		}
	}
	took := int64(time.Since(start))
	if !m.counts() {
		took = 0
	}
	took, err := m.agree(took)
	return float64(took) / float64(len(m.times)), err
}

// row returns the Row of the slowest rank's times, which it sorts.
func (m *meter) row(slowest []int64, b2b float64) result.Row {
	slices.Sort(slowest)
	usec := func(ns float64) float64 { return ns / 1e3 / m.messages() }
	r := result.Row{
		Impl: Impl, Op: m.op.label(m.o), NP: m.np, Bytes: m.n * m.o.Type.Size(), Iters: len(slowest),
		Median: usec(float64(result.Quantile(slowest, 0.5))),
		Min:    usec(float64(result.Quantile(slowest, 0))),
		P99:    usec(float64(result.Quantile(slowest, 0.99))),
		B2B:    usec(b2b),
	}
	if r.Median > 0 {
		r.AlgBW = float64(r.Bytes) * m.op.volume(m.np) / r.Median / 1e3
		r.BusBW = r.AlgBW * m.op.bus(m.np)
	}
	return r
}

// messages returns the number of consecutive messages in a call, the divisor of its time.
func (m *meter) messages() float64 {
	switch {
	case m.op.window:
		return float64(m.window)
	case m.op.trips > 0:
		return float64(m.op.trips)
	}
	return 1
}
