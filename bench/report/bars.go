package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// wide is the quotient of the largest and the smallest value from which bars have a
// logarithmic axis: on a linear one the largest would flatten the others.
const wide = 10

// A barAxis is where bars begin and how long they are.
type barAxis struct {
	origin float64   // the value at which bars begin
	ticks  []float64 // values with a line and a label
	at     func(v float64) float64
}

const barMargin = 8

// barAxis returns the axis of c: ratios go to both sides of 1, logarithmically; other
// values begin at zero, or where they are far apart at a power of ten.
func (c *chart) barAxis() (barAxis, bool) {
	lo, hi := c.span()
	if hi == 0 {
		return barAxis{}, false
	}
	const left, right = barMargin, plotWidth - 2*barMargin // the last label needs some room
	logarithmic := func(lo, hi, origin float64) barAxis {
		a := axis{lo, hi, left, right}
		return barAxis{origin, ticks(lo, hi), func(v float64) float64 { return a.at(min(max(v, lo), hi)) }}
	}
	switch {
	case c.yUnit == Times:
		lo, hi = c.bounds()
		return logarithmic(lo, hi, 1), true
	case hi/lo > wide:
		lo = math.Pow(10, math.Floor(math.Log10(lo/1.3)))
		return logarithmic(lo, hi, lo), true
	}
	return barAxis{0, nil, func(v float64) float64 { return left + max(v, 0)/hi*(right-left) }}, true
}

// bars draws a bar for each value, in groups by x.
func (c *chart) bars() string {
	axis, ok := c.barAxis()
	if !ok {
		return ""
	}
	var body strings.Builder
	y := marginTop
	for _, x := range c.xs {
		if len(c.xs) > 1 || !c.numbers {
			fmt.Fprintf(&body, `<text class="strong" x="%d" y="%d">%s</text>`, barMargin, y+13, html.EscapeString(c.label(x)))
			y += barHeight
		}
		for i, s := range c.series {
			if v, ok := c.at[[2]string{s, x}]; ok {
				c.bar(&body, axis, i, y, v)
				y += 2 * barHeight
			}
		}
	}
	height := y
	if len(axis.ticks) > 0 {
		height += barHeight
	}
	var b strings.Builder
	c.open(&b, height)
	for _, t := range axis.ticks {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %dV%d"/>`, axis.at(t), marginTop, y)
		anchor := "middle"
		if axis.at(t) < 3*barMargin { // else its label is cut
			anchor = "start"
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, axis.at(t), y+14, anchor, short(t))
	}
	if c.yUnit == Times {
		fmt.Fprintf(&b, `<path class="even" d="M%.1f %dV%d"/>`, axis.at(1), marginTop, y)
	}
	b.WriteString(body.String() + "</svg>")
	return b.String()
}

// bar draws the value v of series i, with its text above.
func (c *chart) bar(b *strings.Builder, a barAxis, i, y int, v float64) {
	from, to := a.at(a.origin), a.at(v)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s: %s %s</text>`, barMargin, y+14, html.EscapeString(c.series[i]), figure(v), html.EscapeString(c.yUnit))
	fmt.Fprintf(b, `<g class="%s"><path d="M%.1f %dH%.1fv%dH%.1fz"/></g>`, c.class(i), min(from, to), y+barHeight, max(from, to), barHeight-6, min(from, to))
}
