package report

import (
	"fmt"
	"io"
	"strings"

	"gompi/mpirun/internal/table"
)

// Limits of printed tables. JSON has all lines.
const (
	mostSites = 20
	mostRanks = 16
	mostPairs = 8
)

// Text writes the summary as tables of a width.
func (s *Summary) Text(w io.Writer, width int) error {
	var b strings.Builder
	if len(s.PerRank) == 0 {
		fmt.Fprintf(&b, "gompirun -stats: %s: %s\n", s.Program, s.Verdict)
		if s.Hint != "" {
			fmt.Fprintf(&b, "(%s)\n", s.Hint)
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "gompirun -stats: %s: %s on %s, %s",
		s.Program, count(s.Ranks, "rank"), count(len(s.Hosts), "host"), duration(s.Elapsed))
	if s.Runs > 1 {
		fmt.Fprintf(&b, ", %d runs", s.Runs)
	}
	fmt.Fprintf(&b, "\n%s\n", s.Verdict)
	if s.Where != "" {
		fmt.Fprintf(&b, "(%s)\n", s.Where)
	}
	if len(s.Missing) > 0 {
		fmt.Fprintf(&b, "no figures came from %s\n", strings.Join(s.Missing, ", "))
	}
	writeTable(&b, width, siteColumns, s.Sites, mostSites, "sites")
	if s.Copies > 0 {
		fmt.Fprintf(&b, "(one processor here copies %s/s)\n", Amount(s.Copies))
	}
	writeTable(&b, width, rankColumns, s.PerRank, mostRanks, "ranks")
	if len(s.Pairs) > 0 {
		writeTable(&b, width, pairColumns, s.Pairs, mostPairs, "pairs")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTable writes the first lines of a table.
func writeTable[T any](b *strings.Builder, width int, columns []column[T], lines []T, most int, noun string) {
	g := gridOf(columns, inText, lines[:min(len(lines), most)])
	b.WriteString("\n" + strings.Join(table.Lay(append([][]string{g.Head}, g.Rows...), width), ""))
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(b, "(%d more %s: -stats=FILE.json has all)\n", more, noun)
	}
}

// count writes a number and a noun: "1 host", "2 hosts".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", x) }

// duration writes seconds with three digits.
func duration(s float64) string {
	switch {
	case s >= 1:
		return digits(s) + " s"
	case s >= 1e-3:
		return digits(s*1e3) + " ms"
	}
	return digits(s*1e6) + " us"
}

// Amount writes bytes with three digits.
func Amount(n float64) string {
	unit := 0
	for n >= 1000 && unit < 5 {
		n, unit = n/1000, unit+1
	}
	return digits(n) + [...]string{" B", " kB", " MB", " GB", " TB", " PB"}[unit]
}

func digits(x float64) string {
	switch {
	case x >= 100 || x == float64(int(x)):
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
