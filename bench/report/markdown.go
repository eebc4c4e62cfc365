package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// RatioTable writes cells as a Markdown table: the median and back-to-back times
// of the implementations in impls, of which ours is one, and the ratios. Cells
// that ours loses are marked. What is missing is shown as such.
func RatioTable(w io.Writer, cells []Cell, ours string, impls []string) error {
	head := append([]string{"op", "np", "bytes"}, impls...)
	head = append(head, "ratio", "ratio b2b")
	lines := [][]string{head}
	for _, c := range cells {
		line := []string{c.Op, strconv.Itoa(c.NP), Bytes(c.Bytes)}
		for _, impl := range impls {
			line = append(line, times(c, impl))
		}
		lines = append(lines, append(line, FormatRatio(c.Ratio(ours, ByMedian)), FormatRatio(c.Ratio(ours, ByB2B))))
	}
	return Table(w, 1, lines)
}

func times(c Cell, impl string) string {
	r, ok := c.Rows[impl]
	if !ok {
		return "missing"
	}
	return Usec(r.Median) + " / " + Usec(r.B2B)
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

// MeanTable writes the geometric means of the ratios of cells as a Markdown
// table: of each operation, and of all.
func MeanTable(w io.Writer, cells []Cell, ours string) error {
	var ops []string
	for _, c := range cells {
		if !slices.Contains(ops, c.Op) {
			ops = append(ops, c.Op)
		}
	}
	lines := [][]string{{"op", "cells", "lost", "mean ratio", "mean ratio b2b"}}
	for _, op := range ops {
		lines = append(lines, meanLine(op, ours, slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return c.Op != op })))
	}
	return Table(w, 1, append(lines, meanLine("all", ours, cells)))
}

func meanLine(name, ours string, cells []Cell) []string {
	var medians, b2bs []float64
	lost := 0
	for _, c := range cells {
		m, mOK := c.Ratio(ours, ByMedian)
		b, bOK := c.Ratio(ours, ByB2B)
		if mOK {
			medians = append(medians, m)
		}
		if bOK {
			b2bs = append(b2bs, b)
		}
		if mOK && m < 1 || bOK && b < 1 {
			lost++
		}
	}
	mean := func(xs []float64) string { return FormatRatio(GeoMean(xs), len(xs) > 0) }
	return []string{name, strconv.Itoa(len(cells)), strconv.Itoa(lost), mean(medians), mean(b2bs)}
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

// Usec writes microseconds with about three digits that matter.
func Usec(us float64) string {
	switch {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}
