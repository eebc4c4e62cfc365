package main

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/bench/internal/limits"
	"gompi/bench/report"
	"gompi/internal/cli"
)

// A link is the value of -link.
type link struct {
	limits.Link
	text string
}

// units of rates as tc has them, in bytes per second.
var units = []struct {
	name string
	rate float64
}{{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}}

// Set implements pflag.Value.
func (l *link) Set(s string) error {
	rate, burst, hasBurst := strings.Cut(s, ",")
	l.Link, l.text = limits.Link{}, s
	for _, u := range units {
		if digits, ok := strings.CutSuffix(rate, u.name); ok {
			if n, err := strconv.ParseFloat(digits, 64); err == nil {
				l.Rate = n * u.rate
			}
		}
	}
	if !(l.Rate > 0) || l.Rate > 1e15 {
		return fmt.Errorf("want a rate as 1gbit or 100mbit, not %q", rate)
	}
	if hasBurst {
		n, err := cli.ParseSize(burst)
		if err != nil {
			return err
		}
		l.Burst = n
	}
	return nil
}

// String implements pflag.Value.
func (l *link) String() string { return l.text }

// Type implements pflag.Value.
func (l *link) Type() string { return "rate" }

// yardstick returns what tells how long an operation takes on links between hosts if its bytes take
// all the time.
func (l *link) yardstick(cfg config) func(op string, np int) []report.Row {
	return func(op string, np int) []report.Row {
		cells, err := cfg.measured.Rows(op)
		if err != nil {
			return nil
		}
		on := l.Link
		on.Hosts, on.Ranks = len(cfg.hosts), np/len(cfg.hosts)
		var rows []report.Row
		for _, r := range cells {
			if us, ok := on.Time(op, r.Bytes); ok {
				r.Impl, r.NP, r.Median = report.Limit, np, us
				rows = append(rows, r)
			}
		}
		return rows
	}
}
