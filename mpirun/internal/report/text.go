package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Limits of printed tables. JSON has all lines.
const (
	mostSites = 20
	mostRanks = 16
	mostPairs = 8
)

// Text writes the summary as tables.
func (s *Summary) Text(w io.Writer) error {
	var b strings.Builder
	if len(s.PerRank) == 0 {
		fmt.Fprintf(&b, "gompirun -stats: %s: %s\n", s.Program, s.Verdict)
		if s.Hint != "" {
			fmt.Fprintf(&b, "(%s)\n", s.Hint)
		}
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "gompirun -stats: %s: %s on %s, %s", s.Program, count(s.Ranks, "rank"), count(len(s.Hosts), "host"), duration(s.Elapsed))
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
	s.textSites(&b)
	s.textRanks(&b)
	s.textPairs(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Summary) textSites(b *strings.Builder) {
	t := table(b, "\ncall\tcalled at\tcalls\tbytes\ttime/rank\tmin\tmax\twait\tlate\tbandwidth")
	for i, l := range s.Sites {
		if i == mostSites {
			break
		}
		t.row(l.Op, dash(l.Place), fmt.Sprint(l.Calls), Amount(float64(l.Bytes)), duration(l.Mean), duration(l.Min), duration(l.Max),
			percent(l.Wait), l.late(), l.rate())
	}
	t.end(len(s.Sites)-mostSites, "sites")
	if s.Copies > 0 {
		fmt.Fprintf(b, "(one processor here copies %s/s)\n", Amount(s.Copies))
	}
}

func (l *Site) late() string {
	if l.Latest < 0 {
		return "-"
	}
	return fmt.Sprintf("rank %d", l.Latest)
}

func (l *Site) rate() string {
	if l.Bytes == 0 {
		return "-"
	}
	return Amount(l.Bandwidth) + "/s"
}

func (s *Summary) textRanks(b *strings.Builder) {
	t := table(b, "\nrank\thost\ttime\tcalls\tin calls\toutside\tshare")
	for i, r := range s.PerRank {
		if i == mostRanks {
			break
		}
		t.row(fmt.Sprint(r.Rank), r.Host, duration(r.Elapsed), fmt.Sprint(r.Calls), duration(r.InCalls), duration(r.Outside), percent(r.Share))
	}
	t.end(len(s.PerRank)-mostRanks, "ranks")
}

func (s *Summary) textPairs(b *strings.Builder) {
	if len(s.Pairs) == 0 {
		return
	}
	t := table(b, "\nfrom\tto\tmessages\tbytes")
	for i, p := range s.Pairs {
		if i == mostPairs {
			break
		}
		t.row(fmt.Sprint(p.From), fmt.Sprint(p.To), fmt.Sprint(p.Messages), Amount(float64(p.Bytes)))
	}
	t.end(len(s.Pairs)-mostPairs, "pairs")
}

// A grid is a table under way.
type grid struct {
	b *strings.Builder
	w *tabwriter.Writer
}

func table(b *strings.Builder, head string) grid {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	return grid{b, w}
}

func (g grid) row(cells ...string) { fmt.Fprintln(g.w, strings.Join(cells, "\t")) }

func (g grid) end(more int, of string) {
	g.w.Flush()
	if more > 0 {
		fmt.Fprintf(g.b, "(%d more %s: -stats=FILE.json has all)\n", more, of)
	}
}

// count writes a number and a noun: "1 host", "2 hosts".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
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
