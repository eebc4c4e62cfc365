package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Column is one that RatioTable adds.
type Column struct {
	Title string
	Of    func(Cell) string
}

// RatioTable writes cells as a Markdown table: the median and back-to-back times
// of the implementations in impls, of which ours is one, and the ratios. Cells
// that ours loses are marked. What is missing is shown as such.
func RatioTable(w io.Writer, cells []Cell, ours string, impls []string, more ...Column) error {
	head := append([]string{"op", "np", "bytes", "state"}, impls...)
	head = append(head, "ratio", "ratio b2b")
	for _, column := range more {
		head = append(head, column.Title)
	}
	lines := [][]string{head}
	for _, c := range cells {
		line := []string{c.Op, strconv.Itoa(c.NP), Bytes(c.Bytes), fmt.Sprintf("%s x%d", c.State, c.Rounds)}
		for _, impl := range impls {
			line = append(line, times(c, impl))
		}
		line = append(line, FormatRatio(c.Ratio(ours, ByMedian)), b2bRatio(c, ours))
		for _, column := range more {
			line = append(line, column.Of(c))
		}
		lines = append(lines, line)
	}
	return Table(w, 1, lines)
}

func times(c Cell, impl string) string {
	r, ok := c.Rows[impl]
	switch {
	case !ok:
		return "missing"
	case r.B2B == 0:
		return Time(r.Median) + " / -"
	}
	return Time(r.Median) + " / " + Time(r.B2B)
}

// b2bRatio is "-" where nobody has measured back to back.
func b2bRatio(c Cell, ours string) string {
	if c.Rows[ours].Median > 0 && c.Rows[ours].B2B == 0 {
		return "-"
	}
	return FormatRatio(c.Ratio(ours, ByB2B))
}

// FormatRatio shows a ratio, marked if it is lost, and "missing" if not ok.
func FormatRatio(ratio float64, ok bool) string {
	switch {
	case !ok:
		return "missing"
	case ratio < 1:
		return fmt.Sprintf("**%.2f lost**", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// FormatBar shows a bar, which is what a project wants to reach, and whether it is met.
func FormatBar(bar string, met bool) string {
	if met {
		return bar + " met"
	}
	return "**" + bar + " missed**"
}

// A Mean is the geometric mean of the ratios of some cells.
type Mean struct {
	Op          string // AllOps for all
	NP          int
	Cells, Lost int // a cell is lost by either time
	ByMedian    float64
	ByB2B       float64 // 0: there are none
}

// AllOps is the Op of a Mean over all operations.
const AllOps = "all"

// Means returns the geometric means of the ratios of cells, for each number of
// ranks: of each operation, and of all.
func Means(cells []Cell, ours string) []Mean {
	var means []Mean
	for _, ofNP := range runs(cells, func(c Cell) int { return c.NP }) {
		for _, ofOp := range runs(ofNP, func(c Cell) string { return c.Op }) {
			means = append(means, mean(ofOp[0].Op, ours, ofOp))
		}
		means = append(means, mean(AllOps, ours, ofNP))
	}
	return means
}

// runs cuts cells wherever their key changes.
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

func mean(op, ours string, cells []Cell) Mean {
	m := Mean{Op: op, NP: cells[0].NP, Cells: len(cells)}
	var medians, b2bs []float64
	for _, c := range cells {
		a, aOK := c.Ratio(ours, ByMedian)
		b, bOK := c.Ratio(ours, ByB2B)
		if aOK {
			medians = append(medians, a)
		}
		if bOK {
			b2bs = append(b2bs, b)
		}
		if aOK && a < 1 || bOK && b < 1 {
			m.Lost++
		}
	}
	m.ByMedian, m.ByB2B = GeoMean(medians), GeoMean(b2bs)
	return m
}

// MeanTable writes Means as a Markdown table.
func MeanTable(w io.Writer, means []Mean) error {
	lines := [][]string{{"op", "np", "cells", "lost", "mean ratio", "mean ratio b2b"}}
	for _, m := range means {
		lines = append(lines, []string{m.Op, strconv.Itoa(m.NP), strconv.Itoa(m.Cells), strconv.Itoa(m.Lost),
			FormatRatio(m.ByMedian, m.ByMedian > 0), FormatRatio(m.ByB2B, m.ByB2B > 0)})
	}
	return Table(w, 1, lines)
}

// Table writes lines, the first of which is the head, as a Markdown table whose
// columns are aligned in the source, too: the first left columns to the left,
// the others to the right.
func Table(w io.Writer, left int, lines [][]string) error {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, s := range line {
			widths[i] = max(widths[i], len(s), 3)
		}
	}
	var b strings.Builder
	for n, line := range lines {
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-len(s))
			if i < left {
				s += pad
			} else {
				s = pad + s
			}
			b.WriteString("| " + s + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			rule(&b, left, widths)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// rule writes the line under the head, which says how columns are aligned.
func rule(b *strings.Builder, left int, widths []int) {
	for i, width := range widths {
		dashes := strings.Repeat("-", width+1)
		if i < left {
			b.WriteString("|" + dashes + "-")
		} else {
			b.WriteString("|" + dashes + ":")
		}
	}
	b.WriteString("|\n")
}

// Bytes writes a size with the largest binary unit that divides it: "8 B",
// "64 KiB".
func Bytes(n int) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	i := 0
	for ; i < len(units)-1 && n != 0 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, units[i])
}

// Time writes a time in any unit with about three digits that matter.
func Time(t float64) string {
	switch size := math.Abs(t); {
	case size < 10:
		return fmt.Sprintf("%.2f", t)
	case size < 100:
		return fmt.Sprintf("%.1f", t)
	}
	return fmt.Sprintf("%.0f", t)
}
