package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// results are what a comparison has found.
type results struct {
	cfg         config
	comm, steps []contest.Entrant // of each kind of measurement, gompi first
	absent      []string
	facts       []string // about the programs
	samples     []report.Sample
	misses      []contest.Miss
	load        float64 // processors that others used before and after the runs, the larger
	began       time.Time
	took        time.Duration
}

func namesOf(entrants []contest.Entrant) []string {
	var names []string
	for _, e := range entrants {
		names = append(names, e.Name)
	}
	return names
}

// millis writes microseconds as milliseconds with about three digits that matter.
func millis(us float64) string {
	switch ms := us / 1e3; {
	case ms <= -100 || ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms <= -10 || ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.2f", ms)
	}
}

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Data-parallel training: %s\n", strings.Join(r.allNames(), ", "))
	if w := r.warning(); w != "" {
		fmt.Fprintf(&b, "\n**Warning: %s**\n", w)
	}
	list(&b, "", r.head())
	list(&b, "Commands", r.commands())
	cells := report.Cells(r.samples)
	if err := r.commTable(&b, cells); err != nil {
		return err
	}
	if err := r.stepTable(&b, cells); err != nil {
		return err
	}
	list(&b, "Not here", r.absent)
	list(&b, "Runs that did not come to their end", r.missed())
	_, err := io.WriteString(out, b.String())
	return err
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if title != "" {
		fmt.Fprintf(b, "\n%s:\n", title)
	}
	b.WriteString("\n")
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line)
	}
}

func (r *results) allNames() []string {
	names := namesOf(r.comm)
	for _, name := range namesOf(r.steps) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (r *results) missed() []string {
	var lines []string
	for _, m := range r.misses {
		line := m.String()
		if m.Round == 0 { // before the rounds
			line = fmt.Sprintf("%s, %s, np=%d: %v", m.Entrant, m.Op, m.NP, m.Err)
		}
		lines = append(lines, line)
	}
	return lines
}

// head says on what was measured, and how.
func (r *results) head() []string {
	lines := []string{contest.Machine()}
	if n := len(r.cfg.hosts); n > 0 {
		text := fmt.Sprintf("%d other hosts, by %s", n, strings.Join(r.cfg.rsh, " "))
		if r.cfg.link.Rate > 0 {
			text += fmt.Sprintf("; the link of each carries %v each way", &r.cfg.link)
		}
		lines = append(lines, text)
	}
	if r.cfg.transport != "" {
		lines = append(lines, "gompi is told to use "+r.cfg.transport)
	}
	lines = append(lines, r.facts...)
	return append(lines,
		fmt.Sprintf("rounds, in turn: %d; %s, %v in all", r.cfg.plan.Rounds, r.began.Format(time.DateOnly), r.took.Round(time.Second)),
		"start of a job, and start after a failure: gompi-launchbench (make launchbench)")
}

// commands says what was run, for the largest number of ranks.
func (r *results) commands() []string {
	var lines []string
	np := slices.Max(r.cfg.plan.NPs)
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

// warning says why the figures may be worth little, "" if nothing speaks against them.
func (r *results) warning() string {
	if r.load < contest.IdleLoad {
		return ""
	}
	return fmt.Sprintf("the machine was busy: other processes used %.1f of %d processors before or after the runs. Measure again when it is idle.", r.load, runtime.NumCPU())
}

// section returns the medians for a page. Its title has what tells one comparison from another.
func (r *results) section() report.Section {
	title := fmt.Sprintf("gompi-ddpbench, %s ranks", strings.Trim(strings.ReplaceAll(fmt.Sprint(r.cfg.plan.NPs), " ", ", "), "[]"))
	for _, is := range []struct {
		so   bool
		text string
	}{
		{len(r.cfg.hosts) > 0, fmt.Sprintf("%d hosts", len(r.cfg.hosts))}, {r.cfg.link.Rate > 0, r.cfg.link.String()},
		{r.cfg.transport != "", r.cfg.transport}, {r.cfg.busy > 0, fmt.Sprintf("backward %v longer", r.cfg.busy)},
		{r.cfg.bucket != defaultBucket, fmt.Sprintf("buckets of %v", &r.cfg.bucket)}, {len(r.cfg.profiles) == 0, strings.Join(r.cfg.models, ", ")},
	} {
		if is.so {
			title += ", " + is.text
		}
	}
	facts := append(r.head(), r.commands()...)
	for _, line := range r.absent {
		facts = append(facts, "not here: "+line)
	}
	for _, line := range r.missed() {
		facts = append(facts, "did not come to its end: "+line)
	}
	cells := report.Cells(r.samples)
	return report.Section{Title: title, Warning: r.warning(), Facts: facts, Points: append(r.commPoints(cells), r.stepPoints(cells)...)}
}
