package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// draw makes a picture of the loss over the steps, with the result and what it
// is compared with as level lines.
func draw(file string, res *result) error {
	p := plot.New()
	p.Title.Text = "Predicting the next byte"
	p.X.Label.Text = "step"
	p.Y.Label.Text = "bits per byte"
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, 8
	p.Legend.Top = true
	p.Legend.XOffs, p.Legend.YOffs = -vg.Centimeter/2, -vg.Centimeter/4
	p.Add(plotter.NewGrid())

	var curve plotter.XYs
	for _, pt := range res.curve {
		curve = append(curve, plotter.XY{X: float64(pt.step), Y: pt.loss})
	}
	if err := addLine(p, "training batches", curve, color.RGBA{0x1f, 0x5f, 0xa8, 0xff}, false); err != nil {
		return err
	}
	var held plotter.XYs
	for _, e := range res.evaluations {
		held = append(held, plotter.XY{X: float64(e.step), Y: e.loss})
	}
	if err := addLine(p, "held-out text during training", held, color.RGBA{0xc0, 0x39, 0x2b, 0xff}, false); err != nil {
		return err
	}
	for _, level := range []struct {
		name  string
		y     float64
		color color.Color
	}{
		{"held-out text", res.loss, color.RGBA{0xc0, 0x39, 0x2b, 0xff}},
		{"unigram", res.unigram, color.Gray{0x50}},
		{"flate -9", res.flate, color.Gray{0xa0}},
	} {
		if len(curve) == 0 {
			break // nothing was trained: no steps to draw over
		}
		line := plotter.XYs{{X: curve[0].X, Y: level.y}, {X: curve[len(curve)-1].X, Y: level.y}}
		if err := addLine(p, level.name, line, level.color, true); err != nil {
			return err
		}
	}
	return p.Save(18*vg.Centimeter, 11*vg.Centimeter, file)
}

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.Color, dashed bool) error {
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.5)
	if dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}
