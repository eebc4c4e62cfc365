package result

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gompi/internal/atomicfile"
)

// A Report is the outcome of a comparison.
type Report struct {
	Title      string
	Warning    string   // why the figures may be wrong, "" without a reason
	Conditions []string // the machine, and how it was measured
	Commands   []string
	Tables     []Table
	Charts     []Chart
	Absent     []string // implementations that are not here, and why
	Misses     []string // runs that failed, and why
}

// A Table is lines below a head.
type Table struct {
	Title string // describes the figures
	Left  int    // how many columns are aligned to the left
	Lines [][]string
}

// Write writes the report as Markdown to w and, unless page is "", as HTML to the file page.
func (r *Report) Write(w io.Writer, page string) error {
	if _, err := io.WriteString(w, r.markdown()); err != nil || page == "" {
		return err
	}
	return atomicfile.Replace(page, r.page)
}

func (r *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", r.Title)
	if r.Warning != "" {
		fmt.Fprintf(&b, "\n**Warning: %s**\n", r.Warning)
	}
	bulletList(&b, "", r.Conditions)
	bulletList(&b, "Commands", r.Commands)
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n%s\n\n", t.Title)
		t.markdown(&b)
	}
	bulletList(&b, "Not here", r.Absent)
	bulletList(&b, "Runs that failed", r.Misses)
	return b.String()
}

func bulletList(b *strings.Builder, title string, lines []string) {
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

// markdown writes the table with aligned columns.
func (t Table) markdown(b *strings.Builder) {
	widths := make([]int, len(t.Lines[0]))
	for _, line := range t.Lines {
		for i, s := range line {
			widths[i] = max(widths[i], len(s), 3)
		}
	}
	for n, line := range t.Lines {
		for i, s := range line {
			pad := strings.Repeat(" ", widths[i]-len(s))
			if i < t.Left {
				s += pad
			} else {
				s = pad + s
			}
			b.WriteString("| " + s + " ")
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, width := range widths {
			dashes := "|" + strings.Repeat("-", width+1)
			if i < t.Left {
				b.WriteString(dashes + "-")
			} else {
				b.WriteString(dashes + ":")
			}
		}
		b.WriteString("|\n")
	}
}

// Missing stands for a figure that was not measured.
const Missing = "missing"

// Ratio formats a ratio, marked if below 1, or Missing if not ok.
func Ratio(ratio float64, ok bool) string {
	switch {
	case !ok:
		return Missing
	case ratio < 1:
		return fmt.Sprintf("**%.2f lost**", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// Time formats a time in any unit with about three significant digits.
func Time(t float64) string {
	switch size := math.Abs(t); {
	case size < 10:
		return fmt.Sprintf("%.2f", t)
	case size < 100:
		return fmt.Sprintf("%.1f", t)
	}
	return fmt.Sprintf("%.0f", t)
}
