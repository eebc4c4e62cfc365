package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gompi/bench/internal/runner"
)

// Losses of an entrant have to equal gompi's in the first lossSteps steps, within lossBound
// relative to the larger, before its times are reported.
const (
	lossSteps = 20
	lossBound = 1e-4
)

// parseLosses reads the lines "loss STEP VALUE" that a program prints for -losses.
func parseLosses(printed string) ([]float64, error) {
	var losses []float64
	for line := range strings.Lines(printed) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "loss" {
			continue
		}
		if len(f) != 3 || f[1] != strconv.Itoa(len(losses)+1) {
			return nil, fmt.Errorf("line %q: want loss %d and its value", strings.TrimSpace(line), len(losses)+1)
		}
		x, err := strconv.ParseFloat(f[2], 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("loss %s is %q: want a finite number", f[1], f[2])
		}
		losses = append(losses, x)
	}
	if len(losses) != lossSteps {
		return nil, fmt.Errorf("%d losses: want %d", len(losses), lossSteps)
	}
	return losses, nil
}

// agree returns an error with both losses of the first step in which they differ.
func agree(mine, theirs []float64) error {
	for i, a := range mine {
		if b := theirs[i]; !(math.Abs(a-b) <= lossBound*max(math.Abs(a), math.Abs(b))) {
			return fmt.Errorf("refused: in step %d its loss is %.9g, gompi's %.9g: want them equal to %g, relatively",
				i+1, b, a, lossBound)
		}
	}
	return nil
}

// agreed returns the entrants whose losses of a model agree with gompi's, gompi first. It reports
// the other entrants as missing. An error means that ctx has ended.
func (t *training) agreed(ctx context.Context, np int, model string) ([]runner.Entrant, error) {
	var all []runner.Entrant
	var mine []float64
	for i, e := range t.whole {
		out, err := e.With("-losses").Start(np, model).Run(ctx, t.Limit)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var losses []float64
		if err == nil {
			losses, err = parseLosses(string(out.Stdout))
		}
		if err == nil && i == 0 {
			mine = losses
		} else if err == nil {
			err = agree(mine, losses)
		}
		if err != nil {
			t.Miss(fmt.Sprintf("%s, %s, np=%d: %v", e.Name, model, np, err))
		}
		if err != nil && i == 0 {
			return nil, nil // no losses to compare with
		}
		if err == nil {
			all = append(all, e)
		}
	}
	return all, nil
}
