package main

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/bench/report"
)

// stepParts are the parts of a whole step, as the programs' rows name them behind the model, with
// their titles.
var stepParts = []struct{ name, title string }{
	{"step", "step"}, {"forward", "forward"}, {"backward", "backward alone"}, {"exposed", "exposed communication"},
	{"optimiser", "optimiser"}, {"comm", "communication alone"},
}

// hiddenBar is the share of communication that this project wants to hide behind backward on a
// link that is slower than memory, where backward takes as long.
const hiddenBar = 0.7

// stepTable writes the times of whole steps, part by part, a line for each entrant.
func (r *results) stepTable(b *strings.Builder, cells []report.Cell) error {
	if len(r.cfg.models) == 0 {
		return nil
	}
	fmt.Fprintf(b, "\nWhole steps of the same weights and batches, ms; the losses of %d steps agree with gompi's to %g. Times are medians of the"+
		" rounds' medians, each of the slowest rank. Exposed is backward with communication, less the backward alone that follows; below zero it is"+
		" noise. The ratio is the step's time, divided by gompi's: BLAS makes the"+
		" difference in forward and backward.", lossSteps, lossBound)
	if r.cfg.busy > 0 {
		fmt.Fprintf(b, " Backward is %v longer by matrix products that nothing needs, as many for each step as took that long before.", r.cfg.busy)
	}
	if r.cfg.bucket != defaultBucket {
		fmt.Fprintf(b, " Buckets have at most %s.", report.Bytes(int(r.cfg.bucket)))
	}
	if r.cfg.Link.Rate > 0 {
		b.WriteString(" Hidden is (communication alone - exposed) / communication alone.")
	}
	b.WriteString("\n\n")
	head := []string{"model", "np", "who"}
	for _, p := range stepParts {
		head = append(head, p.title)
	}
	if r.cfg.Link.Rate > 0 {
		head = append(head, "hidden", "bar")
	}
	lines := [][]string{append(head, "ratio")}
	for _, model := range r.cfg.models {
		for _, np := range r.cfg.NPs {
			for _, e := range r.steps {
				lines = append(lines, r.stepLine(cells, model, np, e.Name))
			}
		}
	}
	return report.Table(b, 3, lines)
}

func part(cells []report.Cell, model, name string, np int) report.Cell {
	return find(cells, model+"/"+name, np)
}

func (r *results) stepLine(cells []report.Cell, model string, np int, who string) []string {
	line := []string{model, strconv.Itoa(np), who}
	for _, p := range stepParts {
		line = append(line, timeOf(part(cells, model, p.name, np), who))
	}
	if r.cfg.Link.Rate > 0 {
		line = append(line, hiddenCells(cells, model, np, who)...)
	}
	if who == ours {
		return append(line, "")
	}
	return append(line, report.FormatRatio(part(cells, model, "step", np).RatioTo(ours, report.ByMedian, who)))
}

// hidden returns the share of communication that backward hides; ok is false for one rank, which
// has none.
func hidden(cells []report.Cell, model string, np int, who string) (share float64, ok bool) {
	exposed, ok := part(cells, model, "exposed", np).Rows[who]
	comm := part(cells, model, "comm", np).Rows[who]
	if !ok || np == 1 || comm.Median <= 0 {
		return 0, false
	}
	return (comm.Median - exposed.Median) / comm.Median, true
}

// hiddenCells shows that share, and whether it reaches the bar, which is for gompi.
func hiddenCells(cells []report.Cell, model string, np int, who string) []string {
	share, ok := hidden(cells, model, np, who)
	percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	switch {
	case !ok:
		return []string{"-", "-"}
	case who != ours && who != torchGompi:
		return []string{percent(share), "-"}
	}
	return []string{percent(share), report.FormatBar(percent(hiddenBar), share >= hiddenBar)}
}

// stepPoints returns the parts as charts, one for each model and number of ranks.
func (r *results) stepPoints(cells []report.Cell) []report.Point {
	var points []report.Point
	for _, model := range r.cfg.models {
		for _, np := range r.cfg.NPs {
			for _, p := range stepParts {
				for _, e := range r.steps {
					if row, ok := part(cells, model, p.name, np).Rows[e.Name]; ok {
						points = append(points, report.Point{
							Chart: fmt.Sprintf("a step of %s, %d ranks", model, np), XUnit: "part", YUnit: "ms", Series: e.Name, X: p.title, Y: row.Median / 1e3,
						})
					}
				}
			}
		}
	}
	return points
}
