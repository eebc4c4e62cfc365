package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/hello"
	"gompi/bench/report"
)

// A footprint is the peak resident memory of the largest of np ranks that have
// only joined and met.
type footprint struct {
	impl string
	np   int
	mb   float64 // 0 if it is not known
}

// memory measures the footprints of gompi and the MPI libraries that are here.
func (cfg config) memory(ctx context.Context, shop *contest.Workshop) ([]footprint, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	peers, _ := shop.EnterAll(ctx, cfg.peers, "mpihello") // who is absent is known already
	entrants := append([]contest.Entrant{cfg.ours(self).WithArgs(hello.AsRank)}, peers...)
	var all []footprint
	for _, np := range cfg.NPs {
		for _, e := range entrants {
			// A rank that fails prints no peak.
			out, _ := e.Command(np, runtime.NumCPU()).Run(ctx, cfg.Limit)
			if ctx.Err() != nil {
				return all, context.Cause(ctx)
			}
			all = append(all, footprint{e.Name, np, hello.Largest(string(out.Stdout), hello.PeakMark) * 1024 / 1e6})
		}
	}
	return all, nil
}

// memoryTable writes the footprints as a Markdown table, a line for each number of
// ranks; ours is marked where it is larger than Open MPI's.
func memoryTable(b *strings.Builder, all []footprint) error {
	var impls []string
	for _, f := range all {
		if !slices.Contains(impls, f.impl) {
			impls = append(impls, f.impl)
		}
	}
	lines := [][]string{append([]string{"np"}, impls...)}
	for _, f := range all {
		if last := lines[len(lines)-1]; last[0] != strconv.Itoa(f.np) {
			lines = append(lines, []string{strconv.Itoa(f.np)})
		}
		cell := "missing"
		if f.mb > 0 {
			cell = fmt.Sprintf("%.1f", f.mb)
		}
		if larger(f, all) {
			cell = "**" + cell + " lost**"
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], cell)
	}
	return report.Table(b, 1, lines)
}

// larger reports whether f is ours and larger than Open MPI's.
func larger(f footprint, all []footprint) bool {
	return f.impl == all[0].impl && slices.ContainsFunc(all, func(o footprint) bool {
		return o.impl == "openmpi" && o.np == f.np && o.mb > 0 && o.mb < f.mb
	})
}

// memoryPoints returns the footprints as a chart.
func memoryPoints(all []footprint) []report.Point {
	var points []report.Point
	for _, f := range all {
		if f.mb > 0 {
			points = append(points, report.Point{
				Chart: "memory of the largest rank after Init", XUnit: "ranks", YUnit: "MB", Series: f.impl, X: strconv.Itoa(f.np), Y: f.mb,
			})
		}
	}
	return points
}
