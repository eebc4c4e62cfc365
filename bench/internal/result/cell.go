package result

import (
	"cmp"
	"fmt"
	"slices"
)

// A Sample is a Row measured in one of several rounds.
type Sample struct {
	Round int
	State string // of the machine; samples are compared within a state; "" for any
	Row
}

// SampleHeader is the first line of samples as CSV.
const SampleHeader = "round,state," + Header

// CSV returns s as the columns of SampleHeader.
func (s Sample) CSV() string { return fmt.Sprintf("%d,%s,%s", s.Round, s.State, s.Row.CSV()) }

// A Cell is one operation at one size in one state of the machine, by every implementation.
type Cell struct {
	Op        string
	NP, Bytes int
	State     string
	Rows      map[string]Row // by Impl: the median over the rounds of every figure
	Rounds    int            // the largest number of rounds of an implementation in this state
}

type cellKey struct {
	op        string
	np, bytes int
	state     string
}

// Cells groups samples into cells, in the order in which their numbers of ranks and operations
// first appear. Sizes of one operation ascend.
func Cells(samples []Sample) []Cell {
	groups := make(map[cellKey]map[string][]Row)
	firstSeen := make(map[string]int) // of an operation or a state
	for _, s := range samples {
		k := cellKey{s.Op, s.NP, s.Bytes, s.State}
		if groups[k] == nil {
			groups[k] = make(map[string][]Row)
		}
		groups[k][s.Impl] = append(groups[k][s.Impl], s.Row)
		for _, name := range []string{s.Op, s.State} {
			if _, seen := firstSeen[name]; !seen {
				firstSeen[name] = len(firstSeen)
			}
		}
	}
	var cells []Cell
	for k, byImpl := range groups {
		c := Cell{Op: k.op, NP: k.np, Bytes: k.bytes, State: k.state, Rows: make(map[string]Row)}
		for impl, rows := range byImpl {
			c.Rows[impl] = medianRow(rows)
			c.Rounds = max(c.Rounds, len(rows))
		}
		cells = append(cells, c)
	}
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.NP, b.NP), cmp.Compare(firstSeen[a.Op], firstSeen[b.Op]),
			cmp.Compare(a.Bytes, b.Bytes),
			cmp.Compare(firstSeen[a.State], firstSeen[b.State]))
	})
	return cells
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
	m.Median, m.B2B = of(ByMedian), of(ByB2B)
	m.Min = of(func(r Row) float64 { return r.Min })
	m.P99 = of(func(r Row) float64 { return r.P99 })
	m.AlgBW = of(func(r Row) float64 { return r.AlgBW })
	m.BusBW = of(func(r Row) float64 { return r.BusBW })
	return m
}

// Find returns the first cell of an operation with np ranks, or an empty one.
func Find(cells []Cell, op string, np int) Cell {
	i := slices.IndexFunc(cells, func(c Cell) bool { return c.Op == op && c.NP == np })
	if i < 0 {
		return Cell{Op: op, NP: np}
	}
	return cells[i]
}

// A Figure picks the time to compare from a Row.
type Figure func(Row) float64

// ByMedian is the time of a call after a barrier.
func ByMedian(r Row) float64 { return r.Median }

// ByB2B is the time without barriers.
func ByB2B(r Row) float64 { return r.B2B }

// Ratio returns the time of the fastest of the others, divided by ours: above 1, ours is faster. ok
// is false if ours or all others are missing.
func (c Cell) Ratio(ours string, by Figure, others ...string) (ratio float64, ok bool) {
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

// A Mean is the geometric mean of the ratios of some cells, and the least of them.
type Mean struct {
	Op, State string // Op is "all" for all
	NP, Cells int
	ByMedian  Ratios
	ByB2B     Ratios
}

// Ratios summarizes ratios of cells; all zero if no cell has one.
type Ratios struct {
	Mean, Least float64
	Lost        int
}

// Means returns the geometric means of the ratios of cells, for each number of ranks and state but
// Moved, in which no two samples need be alike: of each operation, and of all.
func Means(cells []Cell, ours string, others ...string) []Mean {
	var means []Mean
	for _, ofNP := range runs(cells, func(c Cell) int { return c.NP }) {
		var states []string
		for _, c := range ofNP {
			if !slices.Contains(states, c.State) && c.State != Moved {
				states = append(states, c.State)
			}
		}
		for _, state := range states {
			alike := slices.DeleteFunc(slices.Clone(ofNP), func(c Cell) bool { return c.State != state })
			for _, ofOp := range runs(alike, func(c Cell) string { return c.Op }) {
				means = append(means, mean(ofOp[0].Op, ofOp, ours, others))
			}
			means = append(means, mean("all", alike, ours, others))
		}
	}
	return means
}

// Moved is the state of a sample during which the machine's processors moved.
const Moved = "moved"

// runs splits cells where their key changes.
func runs[K comparable](cells []Cell, key func(Cell) K) [][]Cell {
	var all [][]Cell
	for i, c := range cells {
		if i == 0 || key(c) != key(cells[i-1]) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], c)
	}
	return all
}

func mean(op string, cells []Cell, ours string, others []string) Mean {
	ratios := func(by func(Row) float64) (r Ratios) {
		var all []float64
		for _, c := range cells {
			if x, ok := c.Ratio(ours, by, others...); ok {
				if all = append(all, x); x < 1 {
					r.Lost++
				}
			}
		}
		if len(all) > 0 {
			r.Mean, r.Least = GeoMean(all), slices.Min(all)
		}
		return r
	}
	return Mean{Op: op, State: cells[0].State, NP: cells[0].NP, Cells: len(cells), ByMedian: ratios(ByMedian),
		ByB2B: ratios(ByB2B)}
}
