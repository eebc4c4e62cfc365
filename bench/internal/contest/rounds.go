package contest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"gompi/bench/report"
)

// A Plan says what to measure. Args are the flags of gompi-bench and mpibench
// but for the operations.
type Plan struct {
	Rounds int
	NP     int
	Ops    []string
	Args   []string
	Limit  time.Duration // of one run: one operation of one entrant, all sizes
}

// A Miss is a run that did not come to its end.
type Miss struct {
	Round       int
	Entrant, Op string
	Err         error
}

// String says what is missing and why.
func (m Miss) String() string {
	return fmt.Sprintf("%s, %s, round %d: %v", m.Entrant, m.Op, m.Round, m.Err)
}

// Run measures the entrants in turn, operation by operation, round after round:
// what changes about the machine in the meantime meets all of them. sample gets
// each row when it is known, under the name of its entrant; miss gets the runs
// that failed, whose rows so far count. Run ends early with ctx.
func (p Plan) Run(ctx context.Context, entrants []Entrant, sample func(report.Sample) error, miss func(Miss)) error {
	for round := 1; round <= p.Rounds; round++ {
		for _, op := range p.Ops {
			for _, e := range entrants {
				rows, err := p.one(ctx, e, op)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				for _, r := range rows {
					r.Impl = e.Name
					if err := sample(report.Sample{Round: round, Row: r}); err != nil {
						return err
					}
				}
				if err != nil {
					miss(Miss{Round: round, Entrant: e.Name, Op: op, Err: err})
				}
			}
		}
	}
	return nil
}

func (p Plan) one(ctx context.Context, e Entrant, op string) ([]report.Row, error) {
	args := append(append([]string(nil), p.Args...), op)
	out, err := e.Command(p.NP, runtime.NumCPU(), args...).Run(ctx, p.Limit)
	rows, bad := report.ReadCSV(bytes.NewReader(out.Stdout))
	if err == nil {
		err = bad
	}
	return rows, err
}
