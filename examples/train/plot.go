package main

import (
	"fmt"
	"os"
	"strings"
)

// The picture, and the margins for the axes' labels.
const (
	plotWidth, plotHeight = 720, 440
	plotLeft, plotFoot    = 50, 40
	mostBits              = 8 // at the top of the y axis: bits per byte of random text
)

// A curve is a line of the picture.
type curve struct {
	name, color string
	dashed      bool
	points      []point
}

// draw makes a picture of the loss over the steps, with the result and its baselines as level
// lines.
func draw(file string, res *result) error {
	last := int64(1)
	if n := len(res.curve); n > 0 {
		last = res.curve[n-1].step
	}
	level := func(name, color string, loss float64) curve {
		return curve{name, color, true, []point{{step: 0, loss: loss}, {step: last, loss: loss}}}
	}
	var held []point
	for _, e := range res.evaluations {
		held = append(held, point{step: e.step, loss: e.loss})
	}
	curves := []curve{{"training batches", "#1f5fa8", false, res.curve},
		{"held-out text during training", "#c0392b", false, held}}
	if len(res.curve) > 0 { // else nothing was trained: no steps for an x axis
		curves = append(curves, level("held-out text", "#c0392b", res.loss), level("unigram", "#505050", res.unigram),
			level("flate -9", "#a0a0a0", res.flate))
	}
	return os.WriteFile(file, []byte(picture(curves, last)), 0o666)
}

// picture draws curves over the steps up to last.
func picture(curves []curve, last int64) string {
	x := func(step int64) float64 {
		return plotLeft + float64(step)/float64(last)*(plotWidth-2*plotLeft)
	}
	y := func(loss float64) float64 { return (plotHeight - plotFoot) * (1 - loss/mostBits) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -20 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight+20)
	b.WriteString(`<title>Predicting the next byte</title><rect y="-20" width="100%" height="100%" fill="white"/>` + "\n")
	for bits := range mostBits + 1 {
		fmt.Fprintf(&b, `<path stroke="#d8d8d8" d="M%d %.0fH%d"/><text x="30" y="%.0f">%d</text>`+"\n", plotLeft,
			y(float64(bits)), plotWidth-plotLeft, y(float64(bits))+4, bits)
	}
	fmt.Fprintf(&b, `<text x="30" y="-6">bits per byte</text><text x="%d" y="%d">step %d</text>`+"\n",
		plotWidth-2*plotLeft, plotHeight-20, last)
	line := 0
	for _, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		dashes := ""
		if c.dashed {
			dashes = ` stroke-dasharray="5 3"`
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke-width="1.5" stroke="%s"%s points="`, c.color, dashes)
		for _, p := range c.points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(p.step), y(p.loss))
		}
		line++
		fmt.Fprintf(&b, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", plotWidth-240, 16*line, c.color, c.name)
	}
	return b.String() + "</svg>\n"
}
