package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// results are what a comparison has found.
type results struct {
	cfg         config
	comm, steps []contest.Entrant // of each kind of measurement, gompi first
	facts       []string          // about the programs
	record      contest.Record
}

// millis writes microseconds as milliseconds.
func millis(us float64) string { return report.Time(us / 1e3) }

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var tables strings.Builder
	cells := report.Cells(r.record.Samples)
	if err := r.commTable(&tables, cells); err != nil {
		return err
	}
	if err := r.stepTable(&tables, cells); err != nil {
		return err
	}
	return r.record.Write(out, "Data-parallel training: "+strings.Join(r.allNames(), ", "), r.head(), r.commands(), tables.String())
}

func (r *results) allNames() []string {
	names := contest.Names(r.comm)
	for _, name := range contest.Names(r.steps) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// head says on what was measured, and how.
func (r *results) head() []string {
	told := contest.When(r.cfg.Transport != "", "gompi is told to use "+r.cfg.Transport)
	return append(r.record.Head(&r.cfg.Flags, append([]string{told}, r.facts...)...), "start of a job, and start after a failure: gompi-launchbench (make launchbench)")
}

// commands says what was run, for the largest number of ranks.
func (r *results) commands() []string {
	var lines []string
	np := slices.Max(r.cfg.NPs)
	if p := r.commPlan(); len(p.Ops) > 0 {
		for _, e := range r.comm {
			lines = append(lines, fmt.Sprintf("%v: `%v`", e, p.Command(e, np, p.Ops...)))
		}
	}
	for _, model := range r.cfg.models {
		for _, e := range r.steps {
			lines = append(lines, fmt.Sprintf("%v: `%v`", e, r.stepPlan(model).Command(e, np, model)))
		}
	}
	return lines
}

// section returns the medians for a page.
func (r *results) section() report.Section {
	title := r.cfg.Title("gompi-ddpbench",
		contest.When(r.cfg.busy > 0, fmt.Sprintf("backward %v longer", r.cfg.busy)),
		contest.When(r.cfg.bucket != defaultBucket, fmt.Sprintf("buckets of %v", &r.cfg.bucket)),
		contest.When(len(r.cfg.profiles) == 0, strings.Join(r.cfg.models, ", ")))
	cells := report.Cells(r.record.Samples)
	return r.record.Section(title, append(r.head(), r.commands()...), append(r.commPoints(cells), r.stepPoints(cells)...))
}
