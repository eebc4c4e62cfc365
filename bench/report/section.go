package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Section is what one benchmark adds to a page. Its text form holds all of it,
// and a page is made of nothing else: so any benchmark can add its section to a
// page that others have written.
type Section struct {
	Title   string   // names the section within a page
	Warning string   // why the figures are not to be trusted, "" if nothing is known
	Facts   []string // the machine, the commands, what is missing: a line each
	Points  []Point
}

// A Point is one value of a chart. Points of one chart have the same units.
type Point struct {
	Chart  string // title
	XUnit  string // "bytes" is written as sizes; any other unit is part of the axis' label
	YUnit  string // less is better, unless it is Times or ends in "/s"
	Series string // an implementation; others are compared with the first of a chart
	X      string // a number, or a word
	Y      float64
}

// Times is the unit of ratios: how many times better one series is than others, worse below 1.
const Times = "times"

// warningMark begins the line of text that holds a warning.
const warningMark = "warning: "

// pointHeader is the first line of points as CSV.
const pointHeader = "chart,xunit,yunit,series,x,y"

// Text returns the section as text: comments with title and facts, and CSV.
func (s Section) Text() string {
	s = s.clean()
	var b strings.Builder
	heads := []string{s.Title}
	if s.Warning != "" {
		heads = append(heads, warningMark+s.Warning)
	}
	for _, line := range append(heads, s.Facts...) {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	b.WriteString(pointHeader + "\n")
	w := csv.NewWriter(&b)
	for _, p := range s.Points {
		// A strings.Builder takes everything.
		_ = w.Write([]string{p.Chart, p.XUnit, p.YUnit, p.Series, p.X, strconv.FormatFloat(p.Y, 'g', 6, 64)})
	}
	w.Flush()
	return b.String()
}

// clean returns s with all text on one line each.
func (s Section) clean() Section {
	c := Section{Title: oneLine(s.Title), Warning: oneLine(s.Warning), Facts: slices.Clone(s.Facts), Points: slices.Clone(s.Points)}
	for i := range c.Facts {
		c.Facts[i] = oneLine(c.Facts[i])
	}
	for i := range c.Points {
		p := &c.Points[i]
		for _, text := range []*string{&p.Chart, &p.XUnit, &p.YUnit, &p.Series, &p.X} {
			*text = oneLine(*text)
		}
	}
	return c
}

// oneLine makes white space single blanks, and leaves out what no page can hold:
// facts quote what programs print.
func oneLine(s string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.Join(strings.Fields(clean), " ")
}

// ParseSection reads what Text has written.
func ParseSection(text string) (Section, error) {
	var s Section
	var heads []string
	for strings.HasPrefix(text, "# ") || strings.HasPrefix(text, "#\n") {
		line, rest, _ := strings.Cut(text, "\n")
		heads, text = append(heads, oneLine(line[1:])), rest
	}
	if len(heads) == 0 || heads[0] == "" {
		return s, fmt.Errorf("section %.40q: want a first line with # and its title", text)
	}
	s.Title, heads = heads[0], heads[1:]
	if len(heads) > 0 && strings.HasPrefix(heads[0], warningMark) {
		s.Warning, heads = strings.TrimPrefix(heads[0], warningMark), heads[1:]
	}
	s.Facts = slices.Clip(heads)
	head, rows, _ := strings.Cut(text, "\n")
	if head != pointHeader {
		return s, fmt.Errorf("section %q: header %q: want %s", s.Title, head, pointHeader)
	}
	r := csv.NewReader(strings.NewReader(rows))
	r.FieldsPerRecord = strings.Count(pointHeader, ",") + 1
	for {
		f, err := r.Read()
		if err == io.EOF {
			return s.clean(), nil
		}
		if err != nil {
			return s, fmt.Errorf("section %q: %w", s.Title, err)
		}
		y, err := strconv.ParseFloat(f[5], 64)
		if err != nil || math.IsNaN(y) || math.IsInf(y, 0) {
			return s, fmt.Errorf("section %q: y %q: want a number", s.Title, f[5])
		}
		s.Points = append(s.Points, Point{f[0], f[1], f[2], f[3], f[4], y})
	}
}

// A chart is the points of one title, sorted.
type chart struct {
	title, xUnit, yUnit string
	series              []string // in the order in which they come
	xs                  []string // ascending if all are numbers, else as they come
	at                  map[[2]string]float64
	numbers             bool // of xs
}

// charts groups the points of a section.
func (s Section) charts() []*chart {
	var all []*chart
	byTitle := make(map[string]*chart)
	for _, p := range s.Points {
		c := byTitle[p.Chart]
		if c == nil {
			c = &chart{title: p.Chart, xUnit: p.XUnit, yUnit: p.YUnit, at: make(map[[2]string]float64), numbers: true}
			byTitle[p.Chart] = c
			all = append(all, c)
		}
		if !slices.Contains(c.series, p.Series) {
			c.series = append(c.series, p.Series)
		}
		if !slices.Contains(c.xs, p.X) {
			c.xs = append(c.xs, p.X)
		}
		x, err := strconv.ParseFloat(p.X, 64)
		c.numbers = c.numbers && err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
		c.at[[2]string{p.Series, p.X}] = p.Y
	}
	for _, c := range all {
		if c.numbers {
			slices.SortStableFunc(c.xs, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
		}
	}
	return all
}

// number reads an x that is known to be one.
func number(s string) float64 {
	x, _ := strconv.ParseFloat(s, 64)
	return x
}

// label writes an x as people read it.
func (c *chart) label(x string) string {
	if n, err := strconv.Atoi(x); err == nil && c.xUnit == "bytes" {
		return Bytes(n)
	}
	return x
}

// moreIsBetter tells rates and ratios from what something takes.
func (c *chart) moreIsBetter() bool { return c.yUnit == Times || strings.HasSuffix(c.yUnit, "/s") }

// compares reports whether the first series has others to be compared with.
func (c *chart) compares() bool { return len(c.series) > 1 && c.yUnit != Times }

// isSpeed tells times and rates from other quantities, such as memory.
func (c *chart) isSpeed() bool {
	return strings.HasSuffix(c.yUnit, "/s") || slices.Contains([]string{"us", "ms", "s"}, c.yUnit)
}

// gains returns the chart of gain over x, nil if it would show no line.
func (c *chart) gains() *chart {
	if !c.numbers || !c.compares() {
		return nil
	}
	name := "best of the others / " + c.series[0]
	if c.moreIsBetter() {
		name = c.series[0] + " / best of the others"
	}
	g := &chart{title: c.title + ": ratio", xUnit: c.xUnit, yUnit: Times, series: []string{name}, numbers: true, at: make(map[[2]string]float64)}
	for _, x := range c.positive() {
		if ratio, ok := c.gain(x); ok {
			g.xs = append(g.xs, x)
			g.at[[2]string{name, x}] = ratio
		}
	}
	if len(g.xs) < 2 {
		return nil
	}
	return g
}

// gain returns how much better the first series is at x than the best of the
// others: above 1, it wins.
func (c *chart) gain(x string) (float64, bool) {
	mine, here := c.at[[2]string{c.series[0], x}]
	best := 0.0
	for _, s := range c.series[1:] {
		y, ok := c.at[[2]string{s, x}]
		if ok && y > 0 && s != Limit && (best == 0 || (y < best) != c.moreIsBetter()) {
			best = y
		}
	}
	if !here || mine <= 0 || best == 0 {
		return 0, false
	}
	if c.moreIsBetter() {
		return mine / best, true
	}
	return best / mine, true
}

// Points returns the medians of cells as points: a chart of each operation, with
// the series of impls in their order. States are told apart where there are several.
func Points(cells []Cell, impls []string) []Point {
	states := make(map[string]bool)
	for _, c := range cells {
		states[c.State] = true
	}
	var points []Point
	for _, c := range cells {
		chart := fmt.Sprintf("%s, %d ranks", c.Op, c.NP)
		if len(states) > 1 {
			chart += ", " + c.State
		}
		for _, impl := range impls {
			if r, ok := c.Rows[impl]; ok && r.Median > 0 {
				points = append(points, Point{chart, "bytes", "us", impl, strconv.Itoa(r.Bytes), r.Median})
			}
		}
	}
	return points
}
