package main

import (
	"fmt"
	"strconv"

	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
)

// report has a table of each program, and tables of the means.
func (p programs) report(races []race) *result.Report {
	r := p.Report("MPI programs on gompi's MPI libraries and on others")
	cells := result.Cells(p.Samples)
	for _, one := range races {
		r.Commands = append(r.Commands, p.Commands(one.entrants)...)
		r.Tables = append(r.Tables, one.table(cells, p.NPs))
	}
	for _, library := range peers.OnGompi {
		r.Tables = append(r.Tables, p.means(cells, races, library))
	}
	return r
}

// cost is a time, or the inverse of a rate.
func (f programFigure) cost(r result.Row) float64 {
	if f.rate && r.Median > 0 {
		return 1 / r.Median
	}
	return r.Median
}

// table has a line for each figure and number of ranks.
func (r race) table(cells []result.Cell, nps []int) result.Table {
	ours, others := sides(r.entrants)
	names := runner.Names(r.entrants)
	lines := [][]string{append([]string{"figure", "unit", "np"}, names...)}
	for _, name := range ours {
		lines[0] = append(lines[0], "ratio of "+name)
	}
	for _, f := range r.all() {
		for _, np := range nps {
			c := result.Find(cells, r.label(f), np)
			line := []string{f.name, f.unit, strconv.Itoa(np)}
			for _, name := range names {
				line = append(line, in(c, name, f.shown()))
			}
			for _, name := range ours {
				line = append(line, result.Ratio(c.Ratio(name, f.cost, others...)))
			}
			lines = append(lines, line)
		}
	}
	return result.Table{Left: 2, Lines: lines,
		Title: fmt.Sprintf("%s (%s), medians of the rounds. A ratio above 1: gompi's library is faster than the fastest of the others.", r.name, r.does)}
}

// shown is the factor from a row's number to the table's.
func (f programFigure) shown() float64 {
	if f.rate {
		return 1
	}
	return 1 / f.scale
}

// means has the geometric means of a library's ratios over programs: of the commands, and of the
// figures within programs, where each program counts as one.
func (p programs) means(cells []result.Cell, races []race, library string) result.Table {
	lines := [][]string{{"np", "programs", "lost", "command", "within"}}
	for _, np := range p.NPs {
		var commands, within []float64
		lost := 0
		for _, r := range races {
			_, others := sides(r.entrants)
			ratio := func(f programFigure) (float64, bool) {
				return result.Find(cells, r.label(f), np).Ratio(library, f.cost, others...)
			}
			x, ok := ratio(whole)
			if !ok {
				continue
			}
			var inside []float64
			for _, f := range r.figures {
				if y, ok := ratio(f); ok {
					inside = append(inside, y)
				}
			}
			y := result.GeoMean(inside)
			commands, within = append(commands, x), append(within, y)
			if x < 1 || y < 1 {
				lost++
			}
		}
		lines = append(lines, []string{strconv.Itoa(np), strconv.Itoa(len(commands)), strconv.Itoa(lost),
			result.Ratio(result.GeoMean(commands), len(commands) > 0),
			result.Ratio(result.GeoMean(within), len(within) > 0)})
	}
	return result.Table{Lines: lines, Title: "Geometric means of the ratios of " + library +
		" over programs: of the whole command, and of the figures within it:"}
}
