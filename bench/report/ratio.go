package report

import (
	"cmp"
	"maps"
	"slices"
)

// A Sample is a Row measured in one of several rounds.
type Sample struct {
	Round int
	State string // of the machine: only like is compared with like
	Row
}

// SampleHeader is the first line of samples as CSV.
const SampleHeader = "round,state," + Header

// AnyState is the State of samples that it does not matter for: they belong to the
// cells of every state.
const AnyState = "any"

// Limit is the Impl of rows that say what the machine allows: no competitor.
const Limit = "limit"

// A Cell is one operation at one size in one state of the machine, as every
// competitor did it.
type Cell struct {
	Op        string
	NP, Bytes int
	State     string
	Rows      map[string]Row // by Impl: the median over the rounds of every figure
	Rounds    int            // the most that anybody has in this state
}

// Cells groups samples by what they measured, in the order in which their numbers
// of ranks and operations first appear. Sizes of one operation ascend.
func Cells(samples []Sample) []Cell {
	groups := make(map[cellKey]map[string][]Row)
	told := make(map[cellKey]bool)    // in some state that is told
	firstSeen := make(map[string]int) // of an operation or a state
	for _, s := range samples {
		k := cellKey{s.Op, s.NP, s.Bytes, s.State}
		if groups[k] == nil {
			groups[k] = make(map[string][]Row)
		}
		groups[k][s.Impl] = append(groups[k][s.Impl], s.Row)
		told[k.inAnyState()] = told[k.inAnyState()] || s.State != AnyState
		for _, name := range []string{s.Op, s.State} {
			if _, seen := firstSeen[name]; !seen {
				firstSeen[name] = len(firstSeen)
			}
		}
	}
	var cells []Cell
	for k := range groups {
		if k.state == AnyState && told[k] {
			continue // it is part of the others
		}
		if c := newCell(k, groups[k], groups[k.inAnyState()]); c.Rounds > 0 {
			cells = append(cells, c)
		}
	}
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.NP, b.NP), cmp.Compare(firstSeen[a.Op], firstSeen[b.Op]), cmp.Compare(a.Bytes, b.Bytes),
			cmp.Compare(firstSeen[a.State], firstSeen[b.State]))
	})
	return cells
}

type cellKey struct {
	op        string
	np, bytes int
	state     string
}

func (k cellKey) inAnyState() cellKey {
	k.state = AnyState
	return k
}

// newCell makes the medians of what was measured in the cell's state, and of what
// holds in any.
func newCell(k cellKey, here, anywhere map[string][]Row) Cell {
	c := Cell{Op: k.op, NP: k.np, Bytes: k.bytes, State: k.state, Rows: make(map[string]Row)}
	for impl, rows := range anywhere {
		c.Rows[impl] = medianRow(rows)
	}
	for impl, rows := range here {
		c.Rows[impl] = medianRow(rows)
		if impl != Limit {
			c.Rounds = max(c.Rounds, len(rows))
		}
	}
	return c
}

func medianRow(rows []Row) Row {
	of := func(figure func(Row) float64) float64 {
		xs := make([]float64, len(rows))
		for i, r := range rows {
			xs[i] = figure(r)
		}
		return Median(xs)
	}
	m := rows[0]
	m.Median = of(func(r Row) float64 { return r.Median })
	m.Min = of(func(r Row) float64 { return r.Min })
	m.P99 = of(func(r Row) float64 { return r.P99 })
	m.Iters = int(of(func(r Row) float64 { return float64(r.Iters) }))
	m.B2B = of(func(r Row) float64 { return r.B2B })
	m.AlgBW = of(func(r Row) float64 { return r.AlgBW })
	m.BusBW = of(func(r Row) float64 { return r.BusBW })
	return m
}

// A Figure picks the time to compare from a Row.
type Figure func(Row) float64

// ByMedian and ByB2B are the two times of a Row.
func ByMedian(r Row) float64 { return r.Median }

// ByB2B is the time without barriers.
func ByB2B(r Row) float64 { return r.B2B }

// Ratio returns the time of the fastest competitor of ours, divided by that of
// ours: above 1, ours is faster. ok is false if ours or all others are missing.
func (c Cell) Ratio(ours string, by Figure) (ratio float64, ok bool) {
	others := slices.DeleteFunc(slices.Collect(maps.Keys(c.Rows)), func(impl string) bool { return impl == ours || impl == Limit })
	return c.RatioTo(ours, by, others...)
}

// RatioTo is Ratio among some competitors.
func (c Cell) RatioTo(ours string, by Figure, others ...string) (ratio float64, ok bool) {
	best := 0.0
	for _, impl := range others {
		if t := by(c.Rows[impl]); t > 0 && (best == 0 || t < best) {
			best = t
		}
	}
	mine := by(c.Rows[ours])
	if mine <= 0 || best == 0 {
		return 0, false
	}
	return best / mine, true
}
