package main

import (
	"fmt"
	"slices"
	"strconv"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
)

func (t *training) report() *result.Report {
	conditions := append(t.where(), t.conditions...)
	if t.busy > 0 {
		conditions = append(conditions, fmt.Sprintf("backward is %v longer by matrix products that nothing needs", t.busy))
	}
	if t.bucket != defaultBucket {
		conditions = append(conditions, "buckets of at most "+result.Bytes(int(t.bucket)))
	}
	r := t.Report("Data-parallel training", conditions...)
	cells := result.Cells(t.Samples)
	if len(t.profiles) > 0 {
		r.Commands = append(r.Commands, t.Commands(t.comm, append(t.args(), operation(t.profiles[0]))...)...)
		r.Tables = append(r.Tables, t.commTable(cells))
	}
	if len(t.models) > 0 {
		r.Commands = append(r.Commands, t.Commands(t.whole, append(t.stepArgs(), t.models[0])...)...)
		r.Tables = append(r.Tables, t.stepTable(cells))
	}
	r.Charts = append(t.commCharts(cells), t.stepCharts(cells)...)
	return r
}

// commTable has the times of the communication alone. torch-unsent has no ratio: it sends nothing.
func (t *training) commTable(cells []result.Cell) result.Table {
	names := runner.Names(t.comm)
	head := []string{"model", "np", "parameters", "MB"}
	for i, name := range names {
		head = append(head, name)
		if i > 0 && name != peers.TorchUnsent {
			head = append(head, "ratio")
		}
	}
	lines := [][]string{head}
	for _, m := range t.profiles {
		for _, np := range t.NPs {
			lines = append(lines, commLine(result.Find(cells, operation(m), np), m, names))
		}
	}
	return result.Table{Left: 1, Lines: lines,
		Title: "Communication alone, ms a step: the median of the rounds' medians, each of the slowest rank, and" +
			" how many times as long as gompi's that is. comm/ddp averages gradients that are announced from the last to the first; PyTorch's" +
			" backward pass does the same with the derivative of a sum, which torch-unsent does without sending; MPI libraries sum the same" +
			" buckets by MPI_Iallreduce, or (blocking) one after the other by MPI_Allreduce."}
}

func commLine(c result.Cell, m measure.Model, names []string) []string {
	line := []string{m.Name, strconv.Itoa(c.NP), strconv.Itoa(len(m.Lengths)),
		fmt.Sprintf("%.1f", float64(4*m.Size())/1e6)}
	for i, name := range names {
		line = append(line, in(c, name, 1e-3))
		switch {
		case i == 0 || name == peers.TorchUnsent:
		case c.NP == 1: // no other rank to average with
			line = append(line, "-")
		default:
			line = append(line, result.Ratio(c.Ratio(names[0], result.ByMedian, name)))
		}
	}
	return line
}

// commCharts has a chart for each number of ranks.
func (t *training) commCharts(cells []result.Cell) (charts []result.Chart) {
	for _, np := range t.NPs {
		chart := result.Chart{Title: fmt.Sprintf("averaging gradients, %d ranks", np), Y: "ms"}
		for _, m := range t.profiles {
			c := result.Find(cells, operation(m), np)
			for _, e := range t.comm {
				if r, ok := c.Rows[e.Name]; ok && np > 1 && e.Name != peers.TorchUnsent {
					chart.Points = append(chart.Points, result.Point{Series: e.Name, Word: m.Name, Y: r.Median / 1e3})
				}
			}
		}
		charts = append(charts, chart)
	}
	return slices.DeleteFunc(charts, func(c result.Chart) bool { return len(c.Points) == 0 })
}

// stepParts are the parts of a whole step, with their titles. In a row the part's name follows the
// model's.
var stepParts = []struct{ name, title string }{
	{"step", "step"}, {"forward", "forward"}, {"backward", "backward alone"}, {"exposed", "exposed communication"},
	{"optimiser", "optimiser"}, {"comm", "communication alone"},
}

// stepTable has the times of whole steps, part by part, a line for each entrant.
func (t *training) stepTable(cells []result.Cell) result.Table {
	head := []string{"model", "np", "who"}
	for _, p := range stepParts {
		head = append(head, p.title)
	}
	lines := [][]string{append(head, "hidden", "ratio")}
	for _, model := range t.models {
		for _, np := range t.NPs {
			for _, e := range t.whole {
				line := []string{model, strconv.Itoa(np), e.Name}
				for _, p := range stepParts {
					line = append(line, in(result.Find(cells, model+"/"+p.name, np), e.Name, 1e-3))
				}
				ratio := ""
				if ours := t.whole[0].Name; e.Name != ours {
					ratio = result.Ratio(result.Find(cells, model+"/step", np).Ratio(ours, result.ByMedian, e.Name))
				}
				lines = append(lines, append(line, hidden(cells, model, np, e.Name), ratio))
			}
		}
	}
	return result.Table{Left: 3, Lines: lines,
		Title: fmt.Sprintf("Whole steps of the same weights and batches, ms; the losses of %d steps agree with gompi's to %g. Times are"+
			" medians of the rounds' medians, each of the slowest rank. Exposed is backward with communication, less the backward alone that follows; below zero"+
			" it is noise. Hidden is (communication alone - exposed) / communication alone. The ratio is the step's time, divided by gompi's: BLAS makes the"+
			" difference in forward and backward.", lossSteps, lossBound)}
}

// hidden formats the share of communication that backward hides, "-" for one rank.
func hidden(cells []result.Cell, model string, np int, who string) string {
	exposed, ok := result.Find(cells, model+"/exposed", np).Rows[who]
	comm := result.Find(cells, model+"/comm", np).Rows[who]
	if !ok || np == 1 || comm.Median <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*(comm.Median-exposed.Median)/comm.Median)
}

// stepCharts has a chart of the parts for each model and number of ranks.
func (t *training) stepCharts(cells []result.Cell) (charts []result.Chart) {
	for _, model := range t.models {
		for _, np := range t.NPs {
			chart := result.Chart{Title: fmt.Sprintf("a step of %s, %d ranks", model, np), Y: "ms"}
			for _, p := range stepParts {
				for _, e := range t.whole {
					if r, ok := result.Find(cells, model+"/"+p.name, np).Rows[e.Name]; ok {
						chart.Points = append(chart.Points, result.Point{Series: e.Name, Word: p.title,
							Y: r.Median / 1e3})
					}
				}
			}
			charts = append(charts, chart)
		}
	}
	return slices.DeleteFunc(charts, func(c result.Chart) bool { return len(c.Points) == 0 })
}
