package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/shapes"
	"gompi/bench/report"
)

// bar returns what this project wants to reach in a cell: so many times as fast as torch-gloo, 0
// for nothing.
func (cfg config) bar(profile string, np, processors int) float64 {
	switch {
	case profile != "resnet50" || cfg.Link.Rate > 0 || cfg.Transport != "":
		return 0
	case len(cfg.HostNames) > 0:
		if np == len(cfg.HostNames) {
			return 1.5
		}
	case np <= processors && np == 2:
		return 8
	case processors == 2 && np == 4:
		return 4
	}
	return 0
}

// barCell shows whether a bar is met.
func barCell(bar, got float64, ok bool) string {
	switch {
	case bar == 0:
		return "-"
	case !ok:
		return "missing"
	}
	return report.FormatBar(fmt.Sprintf("%.1f", bar), got >= bar)
}

// commTable writes the times of the communication alone.
func (r *results) commTable(b *strings.Builder, cells []report.Cell) error {
	if len(r.cfg.profiles) == 0 {
		return nil
	}
	b.WriteString("\nCommunication alone, ms a step: the median of the rounds' medians, each of the slowest rank" +
		", and how many times as long as gompi's that is. comm/ddp averages gradients that are announced from the last to the first" +
		"; PyTorch's backward pass does the same with the derivative of a sum, which torch-unsent does without sending; Open MPI sums" +
		" the same buckets by MPI_Iallreduce, or one after the other by MPI_Allreduce. One rank averages nothing: what is left is the layer's own." +
		" The bar is against " + torchGloo + ".")
	if r.cfg.Link.Rate > 0 {
		b.WriteString(" The limit is the time that the bytes take on the link.")
	}
	b.WriteString("\n\n")
	head := []string{"model", "np", "parameters", "MB", ours}
	for _, e := range r.comm[1:] {
		head = append(head, e.Name)
		if e.Name != torchUnsent {
			head = append(head, "ratio")
		}
	}
	head = append(head, "bar")
	if r.cfg.Link.Rate > 0 {
		head = append(head, "limit")
	}
	lines := [][]string{head}
	for _, m := range r.cfg.profiles {
		for _, np := range r.cfg.NPs {
			lines = append(lines, r.commLine(m, np, find(cells, operation(m), np)))
		}
	}
	return report.Table(b, 1, lines)
}

// find returns a cell, or an empty one.
func find(cells []report.Cell, op string, np int) report.Cell {
	i := slices.IndexFunc(cells, func(c report.Cell) bool { return c.Op == op && c.NP == np })
	if i < 0 {
		return report.Cell{Op: op, NP: np}
	}
	return cells[i]
}

func (r *results) commLine(m shapes.Model, np int, c report.Cell) []string {
	line := []string{m.Name, strconv.Itoa(np), strconv.Itoa(len(m.Lengths)), fmt.Sprintf("%.1f", float64(4*m.Size())/1e6), timeOf(c, ours)}
	for _, e := range r.comm[1:] {
		line = append(line, timeOf(c, e.Name))
		if e.Name != torchUnsent {
			line = append(line, ratioCell(c, np, e.Name))
		}
	}
	got, ok := c.RatioTo(ours, report.ByMedian, torchGloo)
	line = append(line, barCell(r.cfg.bar(m.Name, np, runtime.NumCPU()), got, ok))
	if r.cfg.Link.Rate > 0 {
		line = append(line, r.limit(m, np))
	}
	return line
}

// ratioCell is "-" for one rank, which has nobody to average with.
func ratioCell(c report.Cell, np int, who string) string {
	if np == 1 {
		return "-"
	}
	return report.FormatRatio(c.RatioTo(ours, report.ByMedian, who))
}

// limit shows the least time that the bytes of a model take on the links.
func (r *results) limit(m shapes.Model, np int) string {
	us, ok := r.cfg.Links(np).Time("allreduce", 4*m.Size())
	if !ok {
		return "-"
	}
	return millis(us)
}

// timeOf shows the time of impl in a cell.
func timeOf(c report.Cell, impl string) string {
	row, ok := c.Rows[impl]
	if !ok {
		return "missing"
	}
	return millis(row.Median)
}

// commPoints returns the times as charts, one for each number of ranks.
func (r *results) commPoints(cells []report.Cell) []report.Point {
	var points []report.Point
	for _, np := range r.cfg.NPs {
		for _, m := range r.cfg.profiles {
			c := find(cells, operation(m), np)
			for _, e := range r.comm {
				if row, ok := c.Rows[e.Name]; ok && np > 1 && e.Name != torchUnsent {
					points = append(points, report.Point{
						Chart: fmt.Sprintf("averaging gradients, %d ranks", np), XUnit: "model", YUnit: "ms", Series: e.Name, X: m.Name, Y: row.Median / 1e3,
					})
				}
			}
		}
	}
	return points
}
