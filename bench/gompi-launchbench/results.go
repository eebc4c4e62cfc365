package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// String is the line of progress.
func (j job) String() string {
	s := fmt.Sprintf("round %d: %s, np=%d: %.0f ms", j.round, j.entrant, j.np, ms(j))
	if j.err != nil {
		s += ": " + j.err.Error()
	}
	return s
}

func ms(j job) float64 { return j.took.Seconds() * 1e3 }

// raw returns every job as CSV.
func (r *results) raw() string {
	var b strings.Builder
	b.WriteString("round,impl,np,ms,ended\n")
	for _, j := range r.jobs {
		ended := "well"
		if j.err != nil {
			ended = "badly"
		}
		fmt.Fprintf(&b, "%d,%s,%d,%.3f,%s\n", j.round, j.entrant, j.np, ms(j), ended)
	}
	return b.String()
}

// median returns the middle of the times of the jobs of a cell that ended well,
// and how many did not.
func (r *results) median(k key) (millis float64, well, badly int) {
	var times []float64
	for _, j := range r.jobs {
		switch {
		case j.key != k:
		case j.err != nil:
			badly++
		default:
			times = append(times, ms(j))
		}
	}
	return report.Median(times), len(times), badly
}

// ratio returns the time of the fastest peer, divided by that of the first
// entrant.
func (r *results) ratio(np int) (float64, bool) {
	best := 0.0
	for _, e := range r.entrants[1:] {
		if t, well, _ := r.median(key{e.Name, np}); well > 0 && (best == 0 || t < best) {
			best = t
		}
	}
	ours, well, _ := r.median(key{r.entrants[0].Name, np})
	if well == 0 || best == 0 {
		return 0, false
	}
	return best / ours, true
}

// write writes the report as Markdown.
func (r *results) write(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Start to finish of a job that starts, meets and ends\n\n%s. ", contest.Machine())
	fmt.Fprintf(&b, "%d rounds, in turn; medians in ms. The ratio is the time of the fastest peer, divided by that of %s.\n\n", r.cfg.rounds, r.entrants[0].Name)
	for _, e := range r.entrants {
		fmt.Fprintf(&b, "- %v: `%v`\n", e, e.Command(r.cfg.nps[0], runtime.NumCPU()))
	}
	b.WriteString("\n")
	if err := r.table(&b, "ratio", r.times, r.ratio); err != nil {
		return err
	}
	b.WriteString("\nPeak resident memory of the largest rank, in MB:\n\n")
	if err := r.table(&b, "ratio", r.memory, r.memoryRatio); err != nil {
		return err
	}
	for _, line := range r.absent {
		fmt.Fprintf(&b, "\nNot here: %s\n", line)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// table writes a line for each number of ranks: what show says of each entrant,
// and a ratio.
func (r *results) table(b *strings.Builder, last string, show func(key) string, ratio func(np int) (float64, bool)) error {
	head := []string{"np"}
	for _, e := range r.entrants {
		head = append(head, e.Name)
	}
	lines := [][]string{append(head, last)}
	for _, np := range r.cfg.nps {
		line := []string{strconv.Itoa(np)}
		for _, e := range r.entrants {
			line = append(line, show(key{e.Name, np}))
		}
		lines = append(lines, append(line, report.FormatRatio(ratio(np))))
	}
	return report.Table(b, 0, lines)
}

func (r *results) times(k key) string {
	t, well, badly := r.median(k)
	switch {
	case well == 0:
		return "none ended well"
	case badly > 0:
		return fmt.Sprintf("%.0f (%d of %d failed)", t, badly, well+badly)
	}
	return fmt.Sprintf("%.0f", t)
}

func (r *results) memory(k key) string {
	if r.peak[k] == 0 {
		return "missing"
	}
	return fmt.Sprintf("%.1f", float64(r.peak[k])*1024/1e6) // the kernel counts in 1024 bytes
}

// memoryRatio returns the memory of a rank of the thriftiest peer, divided by
// that of ours.
func (r *results) memoryRatio(np int) (float64, bool) {
	best := 0
	for _, e := range r.entrants[1:] {
		if kb := r.peak[key{e.Name, np}]; kb > 0 && (best == 0 || kb < best) {
			best = kb
		}
	}
	ours := r.peak[key{r.entrants[0].Name, np}]
	if ours == 0 || best == 0 {
		return 0, false
	}
	return float64(best) / float64(ours), true
}
