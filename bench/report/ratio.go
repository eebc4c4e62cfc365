package report

import (
	"cmp"
	"slices"
)

// A Sample is a Row measured in one of several rounds.
type Sample struct {
	Round int
	Row
}

// SampleHeader is the first line of samples as CSV.
const SampleHeader = "round," + Header

// Medians returns one Row for each implementation, operation, number of ranks
// and size: the median over the rounds of every figure. Rows are in the order
// in which they first appear.
func Medians(samples []Sample) []Row {
	type key struct {
		impl, op  string
		np, bytes int
	}
	var order []key
	groups := make(map[key][]Row)
	for _, s := range samples {
		k := key{s.Impl, s.Op, s.NP, s.Bytes}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], s.Row)
	}
	rows := make([]Row, len(order))
	for i, k := range order {
		rows[i] = medianRow(groups[k])
	}
	return rows
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

// A Cell is one operation at one size, as every competitor did it.
type Cell struct {
	Op        string
	NP, Bytes int
	Rows      map[string]Row // by Impl
}

// Cells groups rows, of which there is one for each Impl at most, by what they
// measured, in the order in which that first appears. Sizes of one operation
// ascend.
func Cells(rows []Row) []Cell {
	var cells []Cell
	firstSeen := make(map[string]int) // of an operation
	for _, r := range rows {
		if _, seen := firstSeen[r.Op]; !seen {
			firstSeen[r.Op] = len(firstSeen)
		}
		i := slices.IndexFunc(cells, func(c Cell) bool { return c.Op == r.Op && c.NP == r.NP && c.Bytes == r.Bytes })
		if i < 0 {
			i = len(cells)
			cells = append(cells, Cell{Op: r.Op, NP: r.NP, Bytes: r.Bytes, Rows: make(map[string]Row)})
		}
		cells[i].Rows[r.Impl] = r
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.NP, b.NP), cmp.Compare(firstSeen[a.Op], firstSeen[b.Op]), cmp.Compare(a.Bytes, b.Bytes))
	})
	return cells
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
	mine, here := c.Rows[ours]
	best := 0.0
	for impl, r := range c.Rows {
		if t := by(r); impl != ours && t > 0 && (best == 0 || t < best) {
			best = t
		}
	}
	if !here || by(mine) <= 0 || best == 0 {
		return 0, false
	}
	return best / by(mine), true
}
