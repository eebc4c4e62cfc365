package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// results are what a comparison has found.
type results struct {
	cfg      config
	entrants []contest.Entrant // gompi first
	memory   []footprint
	record   contest.Record
}

func (r *results) ours() string { return r.entrants[0].Name }

func (r *results) names() []string { return contest.Names(r.entrants) }

// cells returns the medians, and apart from them those of the skew, which is
// nothing to win by.
func (r *results) cells() (cells, skews []report.Cell) {
	isSkew := func(c report.Cell) bool { return report.PlainOp(c.Op) == "skew" }
	all := report.Cells(r.record.Samples)
	cells = slices.DeleteFunc(slices.Clone(all), isSkew)
	skews = slices.DeleteFunc(all, func(c report.Cell) bool { return !isSkew(c) })
	return cells, skews
}

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var b strings.Builder
	cells, skews := r.cells()
	fmt.Fprintf(&b, "\nTimes in us: %s. The ratio is the time of the fastest peer, divided by that of %s.%s\n\n", r.times(), r.ours(), r.explained())
	if err := report.RatioTable(&b, cells, r.ours(), r.names(), r.columns()...); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nGeometric means of the ratios:\n\n")
	if err := report.MeanTable(&b, report.Means(cells, r.ours())); err != nil {
		return err
	}
	if r.hasBars() {
		fmt.Fprintf(&b, "\n%s\n", r.barsMet(cells))
	}
	if err := r.writeAside(&b, skews); err != nil {
		return err
	}
	return r.record.Write(out, strings.Join(r.names(), ", "), r.head(), r.commands(), b.String())
}

// writeAside writes what is measured beside times.
func (r *results) writeAside(b *strings.Builder, skews []report.Cell) error {
	if len(skews) > 0 {
		b.WriteString("\nHow far apart ranks leave the barrier that stands before every timed call, us:\n\n")
		lines := [][]string{append([]string{"np", "state"}, r.names()...)}
		for _, c := range skews {
			line := []string{strconv.Itoa(c.NP), fmt.Sprintf("%s x%d", c.State, c.Rounds)}
			for _, name := range r.names() {
				cell := "missing"
				if row, ok := c.Rows[name]; ok {
					cell = report.Time(row.Median)
				}
				line = append(line, cell)
			}
			lines = append(lines, line)
		}
		if err := report.Table(b, 2, lines); err != nil {
			return err
		}
	}
	if len(r.memory) == 0 {
		return nil
	}
	b.WriteString("\nPeak resident memory of the largest rank after Init and a barrier, MB:\n\n")
	return memoryTable(b, r.memory)
}

// times says what the two times of a cell are.
func (r *results) times() string {
	if r.cfg.measured.Dirty {
		return "the median of the rounds' medians; all ranks write their vectors anew before each call"
	}
	return "the median of the rounds' medians / the median of the rounds' means back to back"
}

// explained says what the columns beside the ratios are.
func (r *results) explained() string {
	text := ""
	if r.hasBars() {
		text += " The bar is what this project wants to reach, below 4 KiB by both times" +
			"; where ranks outnumber processors it is against openmpi, as mpich does not yield and loses whole ticks of the scheduler."
	}
	switch {
	case r.cfg.Link.Rate > 0:
		text += fmt.Sprintf(" The limit is the time that the bytes which have to cross the busiest link take there (%v, without headers);"+
			" for an allreduce of n bytes between h hosts 2(h-1)/h n. A burst may make an operation faster.", &r.cfg.Link)
	case r.hasLimit():
		text += " The limit is the time for one flag to cross between processors and for all processors together to read each input once and" +
			" write each result once, as fast as plain loops over as many bytes did in the same run; with private buffers, bytes that pass through shared memory are moved twice."
	}
	return text
}

// hasBars reports whether there are aims for what is compared.
func (r *results) hasBars() bool {
	return r.cfg.Transport == "" && r.cfg.busy == 0 && len(r.cfg.HostNames) == 0
}

// busy says what computes beside the entrants, "" if nothing does.
func (r *results) busy() string {
	return contest.When(r.cfg.busy > 0, fmt.Sprintf("threads that compute meanwhile: %d", r.cfg.busy))
}

func (r *results) hasLimit() bool {
	return slices.ContainsFunc(r.record.Samples, func(s report.Sample) bool { return s.Impl == report.Limit })
}

// columns are those of the table beside times and ratios.
func (r *results) columns() []report.Column {
	var columns []report.Column
	if r.hasBars() {
		columns = append(columns, report.Column{Title: "bar", Of: func(c report.Cell) string {
			return barOf(c, runtime.NumCPU(), r.cfg.measured.Alloc).in(c, r.ours())
		}})
	}
	if r.hasLimit() {
		columns = append(columns, report.Column{Title: "of the limit", Of: func(c report.Cell) string { return ofLimit(c, r.ours()) }})
	}
	return columns
}

// ofLimit shows how near ours is to what the machine allows.
func ofLimit(c report.Cell, ours string) string {
	least, mine := c.Rows[report.Limit].Median, c.Rows[ours].Median
	if least == 0 || mine == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*least/mine)
}

// barsMet counts.
func (r *results) barsMet(cells []report.Cell) string {
	reached, known := 0, 0
	for _, c := range cells {
		met, ok := barOf(c, runtime.NumCPU(), r.cfg.measured.Alloc).met(c, r.ours())
		if ok {
			known++
		}
		if ok && met {
			reached++
		}
	}
	return fmt.Sprintf("%d of %d bars are met.", reached, known)
}

// head says on what was measured, and how.
func (r *results) head() []string {
	flag := contest.When(len(r.cfg.HostNames) == 0, "flag between two processors: "+states(r.record.Probes))
	return r.record.Head(&r.cfg.Flags, r.busy(), flag)
}

// states sums up probes: the states in their order, and the span of their times.
func states(probes []contest.Probe) string {
	var order []string
	type span struct {
		n      int
		lo, hi float64
	}
	spans := make(map[string]span)
	for _, p := range probes {
		s, seen := spans[p.State()]
		if !seen {
			order = append(order, p.State())
			s.lo = p.Nanoseconds
		}
		spans[p.State()] = span{s.n + 1, min(s.lo, p.Nanoseconds), max(s.hi, p.Nanoseconds)}
	}
	var parts []string
	for _, name := range order {
		s := spans[name]
		parts = append(parts, fmt.Sprintf("%s in %d of %d probes (%.0f to %.0f ns)", name, s.n, len(probes), s.lo, s.hi))
	}
	return strings.Join(parts, ", ")
}

// commands says what was run, once for each way of running it.
func (r *results) commands() []string {
	var lines []string
	for _, e := range r.entrants {
		for _, np := range r.cfg.NPs {
			lines = append(lines, fmt.Sprintf("%v: `%v`", e, r.cfg.Command(e, np)))
		}
	}
	return lines
}

// section returns the medians for a page.
func (r *results) section() report.Section {
	title := r.cfg.Title("gompi-compare", contest.When(r.cfg.measured.InPlace, "in place"),
		contest.When(r.cfg.measured.Alloc, "gompi's vectors from comm.Alloc"),
		contest.When(r.cfg.measured.Dirty, "vectors written before each call"), r.busy())
	cells, _ := r.cells()
	facts := append(r.head(), r.commands()...)
	if r.hasBars() {
		facts = append(facts, r.barsMet(cells)+" A bar is the ratio that this project wants to reach in a cell: so many times as fast as the fastest of the others.")
	}
	points := meanPoints(report.Means(cells, r.ours()))
	points = append(points, report.Points(cells, append(r.names(), report.Limit))...)
	return r.record.Section(title, facts, append(points, memoryPoints(r.memory)...))
}

// meanPoints returns the means as charts, one for each number of ranks.
func meanPoints(means []report.Mean) []report.Point {
	var points []report.Point
	for _, m := range means {
		chart := fmt.Sprintf("best peer / gompi, geometric means, %d ranks", m.NP)
		if m.ByMedian > 0 {
			points = append(points, report.Point{Chart: chart, XUnit: "operation", YUnit: report.Times, Series: "median", X: m.Op, Y: m.ByMedian})
		}
		if m.ByB2B > 0 {
			points = append(points, report.Point{Chart: chart, XUnit: "operation", YUnit: report.Times, Series: "back to back", X: m.Op, Y: m.ByB2B})
		}
	}
	return points
}
