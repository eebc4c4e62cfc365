package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// results are what a comparison has found.
type results struct {
	plan          contest.Plan
	transport     string            // of gompi, "" for its own choice
	entrants      []contest.Entrant // gompi first
	absent        []string
	before, after contest.Probe
	samples       []report.Sample
	misses        []contest.Miss
}

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var b strings.Builder
	ours := r.entrants[0].Name
	var names []string
	for _, e := range r.entrants {
		names = append(names, e.Name)
	}
	r.writeHead(&b, names)
	cells := report.Cells(report.Medians(r.samples))
	if err := report.RatioTable(&b, cells, ours, names); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nGeometric means of the ratios:\n\n")
	if err := report.MeanTable(&b, cells, ours); err != nil {
		return err
	}
	list(&b, "Not here", r.absent)
	list(&b, "Runs that did not come to their end", r.missed())
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *results) missed() []string {
	var lines []string
	for _, m := range r.misses {
		lines = append(lines, m.String())
	}
	return lines
}

// section returns the medians for a page. Its title has what tells one
// comparison from another.
func (r *results) section() report.Section {
	title := fmt.Sprintf("gompi-compare, %d ranks", r.plan.NP)
	if r.transport != "" {
		title += ", " + r.transport
	}
	facts := []string{
		contest.Machine(),
		fmt.Sprintf("flag between two processors: before %v, after %v", r.before, r.after),
		fmt.Sprintf("%d rounds, in turn: medians of the rounds' medians", r.plan.Rounds),
	}
	for _, e := range r.entrants {
		facts = append(facts, fmt.Sprintf("%v: %v", e, e.Command(r.plan.NP, runtime.NumCPU(), r.plan.Args...)))
	}
	for _, line := range r.absent {
		facts = append(facts, "not here: "+line)
	}
	for _, line := range r.missed() {
		facts = append(facts, "did not come to its end: "+line)
	}
	return report.Section{Title: title, Facts: facts, Points: report.Points(report.Medians(r.samples))}
}

func (r *results) writeHead(b *strings.Builder, names []string) {
	fmt.Fprintf(b, "# %s, np=%d\n\n", strings.Join(names, ", "), r.plan.NP)
	fmt.Fprintf(b, "%s. Flag between two processors: before %v, after %v.\n", contest.Machine(), r.before, r.after)
	fmt.Fprintf(b, "%d rounds, in turn. Times are in us: the median of the rounds' medians / the median of the rounds' means back to back. ", r.plan.Rounds)
	fmt.Fprintf(b, "Ratios are the time of the fastest peer, divided by that of %s.\n\n", names[0])
	for _, e := range r.entrants {
		fmt.Fprintf(b, "- %v: `%v`\n", e, e.Command(r.plan.NP, runtime.NumCPU(), r.plan.Args...))
	}
	b.WriteString("\n")
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line)
	}
}
