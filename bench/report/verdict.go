package report

import (
	"fmt"
	"math"
)

// verdict says in one sentence how the first series did beside the others, "" where
// nothing is compared. Only times and rates count.
func (s Section) verdict() string {
	var ours string
	var ratios int
	var won int
	var logs float64
	var best, worst gainAt
	for _, c := range s.charts() {
		if !c.compares() || !c.isSpeed() || ours != "" && c.series[0] != ours {
			continue
		}
		for _, x := range c.xs {
			ratio, ok := c.gain(x)
			if !ok {
				continue
			}
			g := gainAt{ratio, c.title + ", " + c.label(x)}
			if ratios == 0 || ratio > best.ratio {
				best = g
			}
			if ratios == 0 || ratio < worst.ratio {
				worst = g
			}
			if ratio >= 1 {
				won++
			}
			ours = c.series[0]
			ratios++
			logs += math.Log(ratio)
		}
	}
	if ratios == 0 {
		return ""
	}
	return fmt.Sprintf("%s is at least as fast as the fastest of the others in %d of %d cells; ratio (above 1 is faster): geometric mean %s, best %v, worst %v.",
		ours, won, ratios, figure(math.Exp(logs/float64(ratios))), best, worst)
}

// A gainAt is a ratio, and the cell it is from.
type gainAt struct {
	ratio float64
	where string
}

func (g gainAt) String() string { return fmt.Sprintf("%s (%s)", figure(g.ratio), g.where) }
