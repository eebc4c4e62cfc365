package contest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"gompi/bench/report"
)

// A Record is what the runs of a comparison gave, and what its report says beside the tables.
type Record struct {
	Absent  []string // entrants that are not here, and why
	Samples []report.Sample
	Misses  []Miss
	Probes  []Probe // none: they do not matter

	progress io.Writer
	file     *os.File // takes every sample as it comes; nil: none is wanted
	load     float64  // processors that others used before and after the runs, the larger
	began    time.Time
	took     time.Duration
}

// Begin returns the Record of a comparison that begins now. progress gets a line for each miss.
func Begin(progress io.Writer) Record {
	return Record{progress: progress, began: time.Now(), load: Load()}
}

// Create makes the file for the samples, if name is one. Its first line names the machine.
func (r *Record) Create(name string) (err error) {
	if name == "" {
		return nil
	}
	if r.file, err = os.Create(name); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.file, "# %s\n%s\n", Machine(), report.SampleHeader)
	return err
}

// Sample takes a sample. It writes it at once, so that a run that is cut short leaves its rows.
func (r *Record) Sample(s report.Sample) error {
	r.Samples = append(r.Samples, s)
	if r.file == nil {
		return nil
	}
	_, err := fmt.Fprintf(r.file, "%d,%s,%s\n", s.Round, s.State, strings.Join(s.Fields(), ","))
	return err
}

// Miss takes a miss.
func (r *Record) Miss(m Miss) {
	r.Misses = append(r.Misses, m)
	fmt.Fprintln(r.progress, m)
}

// End ends the Record, and its file.
func (r *Record) End() error {
	r.took = time.Since(r.began)
	r.load = max(r.load, Load())
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// warning says why the figures may be worth little, "" if nothing speaks against them.
func (r *Record) warning() string {
	busy := 0
	for _, p := range r.Probes {
		if p.State() == Busy {
			busy++
		}
	}
	if busy == 0 && r.load < IdleLoad {
		return ""
	}
	text := fmt.Sprintf("the machine was busy: other processes used %.1f of %d processors before or after the runs", r.load, runtime.NumCPU())
	if len(r.Probes) > 0 {
		text += fmt.Sprintf(", and %d of %d probes during them were disturbed", busy, len(r.Probes))
	}
	return text + ". Measure again when it is idle."
}

// Head says on what was measured, and how. Of more, which stands between, "" is left out.
func (r *Record) Head(f *Flags, more ...string) []string {
	lines := []string{Machine()}
	for _, line := range append([]string{f.OnHosts()}, more...) {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return append(lines, fmt.Sprintf("rounds, in turn: %d; %s, %v in all", f.Rounds, r.began.Format(time.DateOnly), r.took.Round(time.Second)))
}

// Write writes the report as Markdown: head, commands and tables are the program's.
func (r *Record) Write(out io.Writer, title string, head, commands []string, tables string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", title)
	if w := r.warning(); w != "" {
		fmt.Fprintf(&b, "\n**Warning: %s**\n", w)
	}
	list(&b, "", head)
	list(&b, "Commands", commands)
	b.WriteString(tables)
	list(&b, "Not here", r.Absent)
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

func (r *Record) missed() []string {
	var lines []string
	for _, m := range r.Misses {
		lines = append(lines, m.String())
	}
	return lines
}

// Section returns what the report adds to a page: facts and points are the program's.
func (r *Record) Section(title string, facts []string, points []report.Point) report.Section {
	for _, line := range r.Absent {
		facts = append(facts, "not here: "+line)
	}
	for _, line := range r.missed() {
		facts = append(facts, "did not come to its end: "+line)
	}
	return report.Section{Title: title, Warning: r.warning(), Facts: facts, Points: points}
}
