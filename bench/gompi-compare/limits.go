package main

import (
	"runtime"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/limits"
	"gompi/bench/report"
)

// yardstick returns what tells the least times of an operation, nil where
// nothing can be said: with one processor, with busy ones, when gompi is told what
// to use, and on other hosts unless their links are known.
func (cfg config) yardstick() func(op string, np int) []report.Row {
	if cfg.Link.Rate > 0 {
		return func(op string, np int) []report.Row { return cfg.leastTimes(op, np, cfg.Links(np).Time) }
	}
	processors := runtime.NumCPU()
	if processors < 2 || cfg.busy > 0 || cfg.Transport != "" || len(cfg.HostNames) > 0 {
		return nil
	}
	gauges := make(map[int]*limits.Gauge) // by number of threads
	return func(op string, np int) []report.Row {
		if !limits.Known(op) {
			return nil
		}
		threads := min(np, processors)
		if gauges[threads] == nil {
			gauges[threads] = limits.New(threads)
		}
		l := gauges[threads].Measure(np, time.Duration(contest.ProbeFlag().Nanoseconds))
		return cfg.leastTimes(op, np, l.Time)
	}
}

// leastTimes returns the cells of an operation whose microseconds least knows.
func (cfg config) leastTimes(op string, np int, least func(op string, bytes int) (us float64, ok bool)) []report.Row {
	cells, err := cfg.measured.Rows(op)
	if err != nil {
		return nil
	}
	var rows []report.Row
	for _, r := range cells {
		if us, ok := least(op, r.Bytes); ok {
			r.Impl, r.NP, r.Median = report.Limit, np, us
			rows = append(rows, r)
		}
	}
	return rows
}
