package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// names of figures, in tables and in CSV.
var names = [numFigures]struct{ title, column, unit string }{
	startToFinish: {"Start to finish", "ms", "ms"},
	firstLine:     {"Until the first line of a rank", "first_ms", "ms"},
	insideInit:    {"Inside init, of the slowest rank", "init_ms", "ms"},
	importTorch:   {"Inside import torch, of the slowest rank", "import_ms", "ms"},
	peakMemory:    {"Peak resident memory of the largest rank", "peak_kb", "MB"},
}

// value returns a figure in the unit of its name.
func (f figure) value(x float64) float64 {
	if f == peakMemory {
		return x * 1024 / 1e6 // the kernel counts in 1024 bytes
	}
	return x
}

// String is the line of progress.
func (j job) String() string {
	return fmt.Sprintf("round %d: %s, np=%d: %.0f ms%s", j.round, j.entrant, j.np, j.figures[startToFinish], because(j.err))
}

// String is the line of progress.
func (a again) String() string {
	return fmt.Sprintf("round %d: %s again after %s: %.0f ms%s", a.round, a.entrant, a.signal, millis(a.took), because(a.err))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// raw returns every job as CSV.
func (r *results) raw() string {
	var b strings.Builder
	b.WriteString("round,program,impl,np")
	for _, n := range names {
		b.WriteString("," + n.column)
	}
	b.WriteString(",ended\n")
	for _, j := range r.jobs {
		fmt.Fprintf(&b, "%d,%s,%s,%d", j.round, j.group, j.entrant, j.np)
		for _, f := range j.figures {
			fmt.Fprintf(&b, ",%.3f", f)
		}
		fmt.Fprintf(&b, ",%s\n", ended(j.err))
	}
	for _, a := range r.agains {
		fmt.Fprintf(&b, "%d,again after %s,%s,%d,%.3f%s,%s\n", a.round, a.signal, a.entrant, r.cfg.restart, millis(a.took), strings.Repeat(",", int(numFigures)-1), ended(a.err))
	}
	return b.String()
}

func ended(err error) string {
	if err != nil {
		return "badly"
	}
	return "well"
}

// median returns the middle of a figure of the jobs of a cell that ended well,
// and how many did not. ok is false if there is no figure.
func (r *results) median(k key, f figure) (x float64, badly int, ok bool) {
	var xs []float64
	for _, j := range r.jobs {
		switch {
		case j.key != k:
		case j.err != nil:
			badly++
		case j.figures[f] > 0:
			xs = append(xs, f.value(j.figures[f]))
		}
	}
	return report.Median(xs), badly, len(xs) > 0
}

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Jobs that start, meet and end\n\n%s.\n\n", strings.Join(r.head(), ". "))
	for _, line := range r.commands() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, g := range r.groups {
		for _, f := range g.figures {
			fmt.Fprintf(&b, "\n%s, %s:\n\n", title(g, f), names[f].unit)
			if err := r.table(&b, g, f); err != nil {
				return err
			}
		}
		if err := r.beyondLogins(&b, g); err != nil {
			return err
		}
	}
	if err := r.restartTable(&b); err != nil {
		return err
	}
	for _, line := range r.absent {
		fmt.Fprintf(&b, "\nNot here: %s\n", line)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func title(g group, f figure) string { return names[f].title + " (" + g.name + ")" }

// head says on what was measured, and how.
func (r *results) head() []string {
	head := []string{contest.Machine(), fmt.Sprintf("%d rounds, in turn; medians", r.cfg.Rounds), "Ratios are the fastest peer's time, divided by gompirun's"}
	if hosts := r.cfg.OnHosts(); hosts != "" {
		head = append(head, hosts)
	}
	return head
}

// commands says what was run, for one number of ranks.
func (r *results) commands() []string {
	var lines []string
	for _, g := range r.groups {
		for _, e := range g.entrants {
			lines = append(lines, fmt.Sprintf("%s: `%v`", strings.TrimSpace(e.name+" "+e.version), e.job(g.nps[0])))
		}
	}
	return lines
}

// table writes a line for each number of ranks: a figure of each entrant, and
// the ratio.
func (r *results) table(b *strings.Builder, g group, f figure) error {
	head := []string{"np"}
	for _, e := range g.entrants {
		head = append(head, e.name)
	}
	lines := [][]string{append(head, "ratio")}
	for _, np := range g.nps {
		line := []string{strconv.Itoa(np)}
		for _, e := range g.entrants {
			line = append(line, r.cell(key{g.name, e.name, np}, f))
		}
		lines = append(lines, append(line, report.FormatRatio(r.ratio(g, np, f, 0))))
	}
	return report.Table(b, 0, lines)
}

// cell shows a figure, and in the first table how often there was none.
func (r *results) cell(k key, f figure) string {
	x, badly, ok := r.median(k, f)
	switch {
	case !ok && badly > 0:
		return "none ended well"
	case !ok:
		return "missing"
	case badly > 0 && f == startToFinish:
		return fmt.Sprintf("%s (%d failed)", short(x), badly)
	}
	return short(x)
}

// short writes a figure with about three digits that matter.
func short(x float64) string {
	if x < 100 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// ratio returns the best figure of the peers, divided by that of the first
// entrant, both less what nobody can avoid.
func (r *results) ratio(g group, np int, f figure, unavoidable float64) (float64, bool) {
	best := 0.0
	for _, e := range g.entrants[1:] {
		x, _, ok := r.median(key{g.name, e.name, np}, f)
		if x -= unavoidable; ok && e.name != floor && x > 0 && (best == 0 || x < best) {
			best = x
		}
	}
	ours, _, ok := r.median(key{g.name, g.entrants[0].name, np}, f)
	if ours -= unavoidable; !ok || ours <= 0 || best == 0 {
		return 0, false
	}
	return best / ours, true
}

// beyondLogins writes what each launcher takes longer than logging in to all
// hosts does, where that was measured.
func (r *results) beyondLogins(b *strings.Builder, g group) error {
	var lines [][]string
	for _, np := range g.nps {
		logins, _, ok := r.median(key{g.name, floor, np}, startToFinish)
		if !ok {
			return nil
		}
		head, line := []string{"np"}, []string{strconv.Itoa(np)}
		for _, e := range g.entrants {
			if e.name == floor {
				continue
			}
			cell := "missing"
			if x, _, ok := r.median(key{g.name, e.name, np}, startToFinish); ok {
				cell = short(x - logins)
			}
			head, line = append(head, e.name), append(line, cell)
		}
		if lines == nil {
			lines = [][]string{append(head, "ratio")}
		}
		lines = append(lines, append(line, report.FormatRatio(r.ratio(g, np, startToFinish, logins))))
	}
	fmt.Fprintf(b, "\nStart to finish, less the logins, ms:\n\n")
	return report.Table(b, 0, lines)
}

// restartMedian returns the middle of the times of an entrant until its ranks
// were there again, or why they were not.
func (r *results) restartMedian(entrant, signal string) (x float64, why error, ok bool) {
	var xs []float64
	for _, a := range r.agains {
		switch {
		case a.entrant != entrant || a.signal != signal:
		case a.err != nil:
			why = a.err
		default:
			xs = append(xs, millis(a.took))
		}
	}
	return report.Median(xs), why, len(xs) > 0
}

// restartTable writes how long it took until all ranks were there again.
func (r *results) restartTable(b *strings.Builder) error {
	if len(r.agains) == 0 {
		return nil
	}
	lines := [][]string{{"after"}}
	entrants := r.restarted()
	lines[0] = append(lines[0], entrants...)
	for _, s := range signals {
		line := []string{s.name}
		for _, e := range entrants {
			cell := "never"
			if x, _, ok := r.restartMedian(e, s.name); ok {
				cell = short(x)
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(b, "\nUntil all of %d ranks were there again after the last was hit (\"never\": not within %v), ms:\n\n", r.cfg.restart, r.cfg.Limit)
	if err := report.Table(b, 1, lines); err != nil {
		return err
	}
	for _, e := range entrants {
		for _, s := range signals {
			if _, why, _ := r.restartMedian(e, s.name); why != nil {
				fmt.Fprintf(b, "\n%s after %s: %v\n", e, s.name, why)
			}
		}
	}
	return nil
}

// restarted lists the entrants that were restarted.
func (r *results) restarted() []string {
	var list []string
	for _, a := range r.agains {
		if !slices.Contains(list, a.entrant) {
			list = append(list, a.entrant)
		}
	}
	return list
}

// section returns the medians for a page.
func (r *results) section() report.Section {
	s := report.Section{Title: "gompi-launchbench", Facts: append(r.head(), r.commands()...)}
	if n := len(r.cfg.HostNames); n > 0 {
		s.Title += fmt.Sprintf(", %d hosts", n)
	}
	for _, line := range r.absent {
		s.Facts = append(s.Facts, "not here: "+line)
	}
	for _, g := range r.groups {
		for _, f := range g.figures {
			for _, e := range g.entrants {
				for _, np := range g.nps {
					if x, _, ok := r.median(key{g.name, e.name, np}, f); ok {
						s.Points = append(s.Points, report.Point{Chart: title(g, f), XUnit: "ranks", YUnit: names[f].unit, Series: e.name, X: strconv.Itoa(np), Y: x})
					}
				}
			}
		}
	}
	for _, e := range r.restarted() {
		for _, sig := range signals {
			if x, _, ok := r.restartMedian(e, sig.name); ok {
				s.Points = append(s.Points, report.Point{Chart: "Until all ranks are there again", XUnit: "after", YUnit: "ms", Series: e, X: sig.name, Y: x})
			}
		}
	}
	return s
}
