package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gompi/bench/internal/result"
	"gompi/comm/sim"
)

// This file compares simulated times with measured ones.

// readRows reads a file of rows, the concatenated output of one or more runs.
func readRows(name string) (rows []result.Row, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(string(text), result.Header+"\n")
	return result.ReadCSV([]byte(head + result.Header + "\n" + strings.ReplaceAll(rest, result.Header+"\n", "")))
}

// compare simulates the measured calls and writes both times. In the rows, an implementation other
// than gompi is the name of an algorithm, selected by GOMPI_TUNE in the measurement.
func (c *simConfig) compare(out io.Writer, rows []result.Row) error {
	t := result.Table{Left: 1, Lines: [][]string{{"op", "ranks", "size", "algorithm", "measured us",
		"simulated us", "ratio"}}}
	chart := result.Chart{Title: "measured and simulated", X: "measured us", Y: "simulated us", Equals: true}
	var ratios []float64
	for _, r := range rows {
		if !slices.Contains(sim.Ops(), simulated(r.Op)) || r.Median <= 0 {
			continue
		}
		x := sim.Call{Op: simulated(r.Op), Ranks: r.NP, Bytes: r.Bytes, Algorithm: r.Impl, Tuning: c.tuning}
		if r.Impl == "gompi" {
			x.Algorithm = ""
		}
		res, err := c.machine.Time(x)
		if err != nil {
			return err
		}
		if x.Algorithm == "" {
			x.Algorithm, _ = c.machine.Choice(x) // an error would have come from Time, too
			x.Algorithm += " *"
		}
		chart.Points = append(chart.Points, result.Point{Series: r.Op, At: r.Median, Y: res.Time * 1e6})
		ratio := res.Time * 1e6 / r.Median
		ratios = append(ratios, math.Abs(math.Log(ratio)))
		t.Lines = append(t.Lines, []string{r.Op, strconv.Itoa(r.NP), result.Bytes(r.Bytes), x.Algorithm,
			result.Time(r.Median), result.Time(res.Time * 1e6), fmt.Sprintf("%.2f", ratio)})
	}
	if len(ratios) == 0 {
		return fmt.Errorf("%s has none of %s", c.measured, strings.Join(sim.Ops(), ", "))
	}
	t.Title = fmt.Sprintf("%d times; * is what gompi chooses. In the median the two differ by %.0f %%.",
		len(ratios), 100*(math.Exp(result.Median(ratios))-1))
	if c.svg != "" {
		if err := chart.File(c.svg); err != nil {
			return err
		}
	}
	report := result.Report{Title: "Measured and simulated", Conditions: []string{c.machine.String()},
		Tables: []result.Table{t}}
	return report.Write(out, "")
}

// fitLinks sets the links of m by rows of latency and bw between two ranks on two hosts. The two
// largest sizes of bw give the rate. The gap is the time of the second largest beyond its bytes at
// this rate. The shortest messages of bw give the overhead. The latency is the shortest message's,
// without the overhead of both ends. If a message of latency is faster than rate and gap allow, the
// difference is the burst, since the link pauses while the answer is under way.
func fitLinks(m *sim.Machine, rows []result.Row) error {
	bw, latency := byBytes(rows, "bw"), byBytes(rows, "latency")
	if len(bw) < 3 || len(latency) == 0 || bw[0].Bytes > 64 || latency[0].Bytes > 64 {
		return errors.New("want rows of 2 ranks: latency and bw of 8 bytes, and bw of two larger sizes")
	}
	long, short := bw[len(bw)-1], bw[len(bw)-2]
	if long.Median <= short.Median {
		return fmt.Errorf("bw of %s takes no longer than of %s: want rows measured on a quiet machine",
			result.Bytes(long.Bytes), result.Bytes(short.Bytes))
	}
	m.Wire = (long.Median - short.Median) * 1e-6 / float64(long.Bytes-short.Bytes)
	m.Gap = max(short.Median*1e-6-float64(short.Bytes)*m.Wire, 0)
	m.Between.Overhead = min(bw[0].Median, latency[0].Median/2) * 1e-6
	m.Between.Latency = max(latency[0].Median*1e-6-2*m.Between.Overhead, 0)
	m.Burst = 0
	for _, r := range latency {
		ahead := float64(r.Bytes) + (m.Gap+m.Between.Latency-r.Median*1e-6)/m.Wire
		m.Burst = max(m.Burst, int(ahead))
	}
	return nil
}

// byBytes returns the rows of an operation with two ranks, by size.
func byBytes(rows []result.Row, op string) (of []result.Row) {
	for _, r := range rows {
		if r.Op == op && r.NP == 2 && r.Median > 0 {
			of = append(of, r)
		}
	}
	slices.SortFunc(of, func(a, b result.Row) int { return a.Bytes - b.Bytes })
	return of
}
