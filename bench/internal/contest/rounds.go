package contest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gompi/bench/report"
)

// A Plan says what to measure. Args are the flags of gompi-bench and its
// counterparts but for the operations.
type Plan struct {
	Rounds int
	NPs    []int // numbers of ranks
	Ops    []string
	Args   []string
	Limit  time.Duration // of one run: one operation of one entrant, all sizes

	Hosts *Hosts // nil: this machine

	// Probe tells the state of the machine. It is asked before and after each
	// group of runs that are compared. If it is nil the state does not matter.
	Probe func() Probe

	// Yardstick, if not nil, measures beside the entrants what the machine itself
	// allows.
	Yardstick func(op string, np int) []report.Row
}

// A Miss is a run that did not come to its end. One before the rounds is of round 0.
type Miss struct {
	Round, NP   int
	Entrant, Op string
	Err         error
}

// String says what is missing and why.
func (m Miss) String() string {
	round := When(m.Round > 0, fmt.Sprintf(", round %d", m.Round))
	return fmt.Sprintf("%s, %s, np=%d%s: %v", m.Entrant, m.Op, m.NP, round, m.Err)
}

// Run measures the entrants in turn, operation by operation, round after round:
// what changes about the machine in the meantime meets all of them. Those who
// start slowly run all operations in one go at the end of a round. sample gets each
// row under the name of its entrant and the state of the machine; miss gets the
// runs that failed, whose rows so far count. Run ends early with ctx.
func (p Plan) Run(ctx context.Context, entrants []Entrant, sample func(report.Sample) error, miss func(Miss)) error {
	for round := 1; round <= p.Rounds; round++ {
		for _, np := range p.NPs {
			r := turn{p, round, np, miss}
			if err := r.run(ctx, entrants, sample); err != nil {
				return err
			}
		}
	}
	return nil
}

// A turn is one round with one number of ranks.
type turn struct {
	Plan
	round, np int
	miss      func(Miss)
}

func (t turn) run(ctx context.Context, entrants []Entrant, sample func(report.Sample) error) error {
	emit := func(state string, rows []report.Row) error {
		for _, r := range rows {
			if err := sample(report.Sample{Round: t.round, State: state, Row: r}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, op := range t.Ops {
		state, rows, err := t.compete(ctx, op, entrants)
		if err == nil {
			err = emit(state, rows)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range entrants {
		if !e.slow {
			continue
		}
		rows, err := t.enter(ctx, e, t.Ops)
		if err == nil {
			err = emit(report.AnyState, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compete runs one operation of all who start quickly, and returns the state of
// the machine meanwhile.
func (t turn) compete(ctx context.Context, op string, entrants []Entrant) (state string, rows []report.Row, err error) {
	var before Probe
	if t.Probe != nil {
		before = t.Probe()
	}
	if t.Yardstick != nil {
		rows = t.Yardstick(op, t.np)
	}
	for _, e := range entrants {
		if e.slow {
			continue
		}
		got, err := t.enter(ctx, e, []string{op})
		if err != nil {
			return "", nil, err
		}
		rows = append(rows, got...)
	}
	if t.Probe == nil {
		return report.AnyState, rows, nil
	}
	return Between(before, t.Probe()), rows, nil
}

// enter runs those of ops that e has. A failed run is a Miss; an error means that ctx has ended.
func (t turn) enter(ctx context.Context, e Entrant, ops []string) ([]report.Row, error) {
	ops = e.can(ops)
	if len(ops) == 0 {
		return nil, nil
	}
	rows, err := t.one(ctx, e, t.np, ops)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		t.miss(Miss{Round: t.round, NP: t.np, Entrant: e.Name, Op: unfinished(ops, rows), Err: err})
	}
	for i := range rows {
		rows[i].Impl = e.Name
	}
	return rows, nil
}

// unfinished returns the operation that a run was in after it had printed rows.
func unfinished(ops []string, rows []report.Row) string {
	at := 0
	if len(rows) > 0 {
		at = max(0, slices.IndexFunc(ops, func(op string) bool { return op == report.PlainOp(rows[len(rows)-1].Op) }))
	}
	return ops[at]
}

// Command returns how e runs ops as np ranks, on the hosts of the plan.
func (p Plan) Command(e Entrant, np int, ops ...string) Command {
	args := slices.Concat(p.Args, ops)
	if p.Hosts != nil {
		return e.Over(p.Hosts, np, args...)
	}
	return e.Command(np, runtime.NumCPU(), args...)
}

func (p Plan) one(ctx context.Context, e Entrant, np int, ops []string) ([]report.Row, error) {
	out, err := p.Command(e, np, ops...).Run(ctx, p.Limit*time.Duration(len(ops)))
	rows, bad := report.ReadCSV(bytes.NewReader(out.Stdout))
	if err == nil {
		err = bad
	}
	return rows, err
}
