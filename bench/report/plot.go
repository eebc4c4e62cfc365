package report

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The drawing of a chart, in units of which a phone shows about one to a pixel.
const (
	plotWidth  = 400
	plotHeight = 280
	marginLeft = 52
	marginTop  = 12
	marginEnd  = 22 // right
	marginFoot = 40
	barHeight  = 18
	labelWidth = 46 // of the x axis
)

// draw returns the chart as SVG: lines over logarithmic axes, with a legend,
// where there are numbers to compare, bars from zero otherwise. Colours come from the
// page's style sheet, so that it is readable on dark screens and on paper.
func (c *chart) draw() string {
	if xs := c.positive(); c.numbers && len(xs) > 1 {
		return c.lines(xs)
	}
	return c.bars()
}

// positive returns the xs that a logarithmic axis can show.
func (c *chart) positive() []string {
	var xs []string
	for _, x := range c.xs {
		if number(x) > 0 {
			xs = append(xs, x)
		}
	}
	return xs
}

// An axis maps values to positions, logarithmically.
type axis struct{ lo, hi, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (math.Log(v)-math.Log(a.lo))/(math.Log(a.hi)-math.Log(a.lo))*(a.to-a.from)
}

func (c *chart) lines(xs []string) string {
	lo, hi := c.bounds()
	if hi == 0 {
		return ""
	}
	y := axis{lo, hi, plotHeight - marginFoot, marginTop}
	x := axis{number(xs[0]), number(xs[len(xs)-1]), marginLeft, plotWidth - marginEnd}
	var b strings.Builder
	c.open(&b, plotHeight)
	for _, t := range ticks(lo, hi) {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/>`, marginLeft, y.at(t), plotWidth-marginEnd)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, marginLeft-6, y.at(t)+4, short(t))
	}
	labelled := math.Inf(-1) // where the last label stands
	for _, v := range xs {
		at := x.at(number(v))
		if at < labelled+labelWidth {
			continue
		}
		labelled = at
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %dV%d"/>`, at, marginTop, plotHeight-marginFoot)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, plotHeight-marginFoot+16, html.EscapeString(c.label(v)))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, (marginLeft+plotWidth-marginEnd)/2, plotHeight-6, html.EscapeString(c.xUnit))
	if c.yUnit == Times {
		fmt.Fprintf(&b, `<path class="even" d="M%d %.1fH%d"/>`, marginLeft, y.at(1), plotWidth-marginEnd)
	}
	for i := len(c.series) - 1; i >= 0; i-- { // the first on top
		c.line(&b, i, xs, x, y)
	}
	b.WriteString("</svg>\n" + c.legend())
	return b.String()
}

// line draws series i, with a mark at each value.
func (c *chart) line(b *strings.Builder, i int, xs []string, x, y axis) {
	var path, marks strings.Builder
	move := "M"
	for _, v := range xs {
		value, ok := c.at[[2]string{c.series[i], v}]
		if !ok || value <= 0 {
			move = "M" // a gap
			continue
		}
		px, py := x.at(number(v)), y.at(value)
		fmt.Fprintf(&path, "%s%.1f %.1f", move, px, py)
		move = "L"
		fmt.Fprintf(&marks, `<path d="%s"><title>%s, %s: %s %s</title></path>`, mark(i, px, py),
			html.EscapeString(c.series[i]), html.EscapeString(c.label(v)), figure(value), html.EscapeString(c.yUnit))
	}
	fmt.Fprintf(b, `<g class="%s"><path class="line" d="%s"/>%s</g>`, c.class(i), path.String(), marks.String())
}

// class is the style of series i.
func (c *chart) class(i int) string {
	if c.series[i] == Limit {
		return Limit
	}
	return fmt.Sprintf("s%d", i%styles)
}

// styles is how many colours and marks there are.
const styles = 8

// mark returns the outline of the mark of series i around a point: shape tells
// series apart where colour does not.
func mark(i int, x, y float64) string {
	shapes := [styles]string{
		"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", // disc
		"m-3.5 -3.5h7v7h-7z",                  // square
		"m0 -4.5l4.5 8h-9z",                   // triangle
		"m0 -5l5 5l-5 5l-5 -5z",               // diamond
		"m0 4.5l4.5 -8h-9z",                   // triangle on its tip
		"m-1.5 -5h3v10h-3z",                   // upright bar
		"m-5 -1.5h10v3h-10z",                  // lying bar
		"m-2 -5h4l3 5l-3 5h-4l-3 -5z",         // hexagon
	}
	return fmt.Sprintf("M%.1f %.1f%s", x, y, shapes[i%styles])
}

// span returns the smallest and largest values above zero, 0 and 0 if there are none.
func (c *chart) span() (lo, hi float64) {
	for _, v := range c.at {
		if v > 0 && (lo == 0 || v < lo) {
			lo = v
		}
		hi = max(hi, v)
	}
	return lo, hi
}

// bounds is span with some air around it, and with 1 in it for ratios.
func (c *chart) bounds() (lo, hi float64) {
	lo, hi = c.span()
	if c.yUnit == Times && hi > 0 {
		lo, hi = min(lo, 1), max(hi, 1)
	}
	return lo / 1.3, hi * 1.3
}

// ticks returns the powers of ten between lo and hi; 2 and 5 times them, too,
// where that leaves few.
func ticks(lo, hi float64) []float64 {
	steps := []float64{1, 2, 5}
	if math.Log10(hi/lo) > 2.5 {
		steps = steps[:1]
	}
	var found []float64
	for e := math.Floor(math.Log10(lo)); e <= math.Log10(hi); e++ {
		for _, s := range steps {
			if t := s * math.Pow(10, e); t >= lo && t <= hi {
				found = append(found, t)
			}
		}
	}
	return found
}

func (c *chart) open(b *strings.Builder, height int) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>%s, %s</title>`,
		plotWidth, height, html.EscapeString(c.title), html.EscapeString(c.yUnit))
}

// legend says which mark is whose.
func (c *chart) legend() string {
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for i, s := range c.series {
		fmt.Fprintf(&b, `<li><svg xmlns="http://www.w3.org/2000/svg" viewBox="-7 -7 14 14" aria-hidden="true"><g class="%s"><path d="%s"/></g></svg>%s</li>`,
			c.class(i), mark(i, 0, 0), html.EscapeString(s))
	}
	b.WriteString("</ul>")
	return b.String()
}

// figure writes a value with three digits that matter.
func figure(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// short writes a tick: 1000 and 0.1 as such, larger ones with k, M, G.
func short(v float64) string {
	for _, u := range []struct {
		unit  float64
		after string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= u.unit*0.999 {
			if u.after == "k" {
				v *= 10
			}
			return strconv.FormatFloat(v/u.unit, 'g', 4, 64) + u.after
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
