package result

import (
	_ "embed"
	"html/template"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"gompi/internal/atomicfile"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"lost": lost}).Parse(pageText))

// lost returns the text of a marked figure, and "" for others.
func lost(cell string) string {
	if text, ok := strings.CutPrefix(cell, "**"); ok {
		return strings.TrimSuffix(text, "**")
	}
	return ""
}

// page writes the report as a self-contained page of HTML: no script and no network.
func (r *Report) page(w io.Writer) error { return pageTemplate.Execute(w, r) }

// A Chart shows times of several implementations, as points over numbers on a logarithmic axis or
// as bars over words.
type Chart struct {
	Title, X, Y string // X is the label of the axis of numbers
	Points      []Point
	Equals      bool // X and Y should be equal: points, and a line of equality
}

// A Point is a value of an implementation.
type Point struct {
	Series string
	Word   string  // its place, if the chart has words
	At     float64 // else, above 0
	Y      float64
	Chosen bool // a ring is drawn around it
}

// File draws the chart into a file.
func (c Chart) File(name string) error {
	svg, err := c.draw()
	if err != nil {
		return err
	}
	return atomicfile.Replace(name, func(w io.Writer) error {
		_, err := io.WriteString(w, svg)
		return err
	})
}

// SVG draws the chart as part of a page.
func (c Chart) SVG() (template.HTML, error) {
	svg, err := c.draw()
	_, text, _ := strings.Cut(svg, "?>")
	return template.HTML(text), err // drawing has escaped its text
}

func (c Chart) draw() (string, error) {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.Legend.Top, p.Legend.Left, p.Title.Padding = true, true, vg.Points(6)
	p.X.Label.Padding, p.Y.Label.Padding = vg.Points(4), vg.Points(4)
	p.Add(plotter.NewGrid())
	add := c.lines
	if c.Points[0].Word != "" {
		add = c.bars
	}
	for i, name := range c.series() {
		if err := add(p, i, name); err != nil {
			return "", err
		}
	}
	if c.Points[0].Word == "" {
		lo, hi := pointSpan(c.Points, func(p Point) float64 { return p.At })
		p.X.Min, p.X.Max = lo/1.1, hi*1.1
		lo, hi = pointSpan(c.Points, func(p Point) float64 { return p.Y })
		p.Y.Min, p.Y.Max = lo/1.3, hi*1.3
		if err := c.marks(p); err != nil {
			return "", err
		}
	}
	svg := vgsvg.New(16*vg.Centimeter, 10*vg.Centimeter)
	lay(p, draw.New(svg))
	var b strings.Builder
	if _, err := svg.WriteTo(&b); err != nil {
		return "", err
	}
	return styles.Replace(b.String()), nil
}

// lay draws a plot, and beside it the legend, where no line is.
func lay(p *plot.Plot, all draw.Canvas) {
	const margin = vg.Centimeter / 2 // between them, too: room for half of the last label
	all.SetColor(p.BackgroundColor)
	all.Fill(all.Rectangle.Path())
	all = draw.Crop(all, margin, -margin, margin, -margin)
	legend := p.Legend
	legend.Padding = vg.Points(5)
	width := legend.Rectangle(all).Size().X
	p.Legend, p.BackgroundColor = plot.NewLegend(), nil
	left := draw.Crop(all, 0, -width-margin, 0, 0)
	for p.Title.TextStyle.Width(p.Title.Text) > left.Size().X && p.Title.TextStyle.Font.Size > 6 {
		p.Title.TextStyle.Font.Size--
	}
	p.Draw(left)
	legend.Draw(draw.Crop(all, all.Size().X-width, 0, 0, -2*margin)) // below the title's line
}

// styles names common fonts, and adds the colors of dark pages. Colors in attributes yield to those
// that are important alone.
var styles = strings.NewReplacer("font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal",
	"font-family:Liberation Sans,Arial,sans-serif", `<g transform="scale(1, -1)`, `<style>@media (prefers-color-scheme: dark) {
svg text { fill: #ddd } svg [style^="fill:#FFFFFF"] { fill: #16181c !important }
svg [style*="stroke:#000000"] { stroke: #ddd !important } svg [style*="stroke:#808080"] { stroke: #555 !important } }</style>
<g transform="scale(1, -1)`)

// marks adds rings around chosen points, and the line of equality.
func (c Chart) marks(p *plot.Plot) error {
	var chosen plotter.XYs
	for _, pt := range c.Points {
		if pt.Chosen {
			chosen = append(chosen, plotter.XY{X: pt.At, Y: pt.Y})
		}
	}
	if len(chosen) > 0 {
		rings, err := plotter.NewScatter(chosen)
		if err != nil {
			return err
		}
		rings.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: vg.Points(6), Shape: draw.RingGlyph{}}
		p.Add(rings)
		p.Legend.Add("chosen", rings)
	}
	if c.Equals {
		line, err := plotter.NewLine(plotter.XYs{{X: p.X.Min, Y: p.X.Min}, {X: p.X.Max, Y: p.X.Max}})
		if err != nil {
			return err
		}
		p.Add(line)
		p.Legend.Add("equal", line)
	}
	return nil
}

// decades are ticks at powers of ten.
type decades struct{ plot.LogTicks }

// Ticks implements plot.Ticker.
func (d decades) Ticks(lo, hi float64) []plot.Tick {
	return slices.DeleteFunc(d.LogTicks.Ticks(lo, hi), func(t plot.Tick) bool { return t.Label == "" })
}

// byteTicks are ticks at powers of 16 bytes.
type byteTicks struct{}

// Ticks implements plot.Ticker.
func (byteTicks) Ticks(lo, hi float64) (all []plot.Tick) {
	for n := 1; float64(n) <= hi; n *= 16 {
		if float64(n) >= lo {
			all = append(all, plot.Tick{Value: float64(n), Label: Bytes(n)})
		}
	}
	return all
}

// pointSpan returns the least and the most of the values above zero, as a logarithmic axis needs.
func pointSpan(points []Point, of func(Point) float64) (lo, hi float64) {
	lo = math.Inf(1)
	for _, p := range points {
		if v := of(p); v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if hi == 0 {
		return 1, 1
	}
	return lo, hi
}

// series are the implementations, in order of appearance.
func (c Chart) series() []string {
	var names []string
	for _, p := range c.Points {
		if !slices.Contains(names, p.Series) {
			names = append(names, p.Series)
		}
	}
	return names
}

func (c Chart) words() []string {
	var words []string
	for _, p := range c.Points {
		if !slices.Contains(words, p.Word) {
			words = append(words, p.Word)
		}
	}
	return words
}

// lines adds a line with marks.
func (c Chart) lines(p *plot.Plot, i int, name string) error {
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{plot.LogTicks{Prec: -1}}, decades{plot.LogTicks{Prec: -1}}
	if c.X == "bytes" {
		p.X.Tick.Marker = byteTicks{}
	}
	var at plotter.XYs
	for _, pt := range c.Points {
		if pt.Series == name && pt.At > 0 && pt.Y > 0 {
			at = append(at, plotter.XY{X: pt.At, Y: pt.Y})
		}
	}
	if len(at) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(at)
	if err != nil {
		return err
	}
	line.Color, marks.Color, marks.Shape = colour(i), colour(i), plotutil.Shape(i)
	if c.Equals {
		p.Add(marks)
		p.Legend.Add(name, marks)
		return nil
	}
	p.Add(line, marks)
	p.Legend.Add(name, line, marks)
	return nil
}

// bars adds a bar for each word.
func (c Chart) bars(p *plot.Plot, i int, name string) error {
	words := c.words()
	values := make(plotter.Values, len(words))
	for _, pt := range c.Points {
		if pt.Series == name {
			values[slices.Index(words, pt.Word)] = max(pt.Y, 0)
		}
	}
	const width = 8
	bars, err := plotter.NewBarChart(values, vg.Points(width))
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = colour(i), 0
	bars.Offset = vg.Points(width * (float64(i) - float64(len(c.series())-1)/2))
	p.Add(bars)
	p.Legend.Add(name, bars)
	p.NominalX(words...)
	return nil
}

// colour returns the color of a series. The colors can be distinguished with most color blindness.
func colour(i int) color.Color {
	colours := []color.RGBA{{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff},
		{0xb5, 0x89, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0x8a, 0x63, 0xd2, 0xff}, {0x7f, 0x7f, 0x7f, 0xff}}
	return colours[i%len(colours)]
}
