package main

import (
	"fmt"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

// Sizes at which bars change.
const (
	kib = 1 << 10
	mib = 1 << 20
)

// A bar is what this project wants to reach in a cell: so many times as fast as the
// fastest peer. 0: there is no bar.
type bar struct {
	ratio   float64
	against string // this peer alone; "": the fastest
	both    bool   // back to back, too
}

// barOf returns the bar of a cell on a machine with so many processors. alloc says
// that our vectors are from comm.Alloc.
func barOf(c report.Cell, processors int, alloc bool) bar {
	op, size := report.PlainOp(c.Op), c.Bytes
	if c.NP > processors {
		// Only against peers that yield the processor: the others lose whole scheduler ticks.
		b := bar{ratio: 1, against: "openmpi", both: size < 4*kib}
		if size >= mib {
			b.ratio = 1.7
		}
		return b
	}
	b := bar{both: size < 4*kib}
	switch {
	case size < kib:
		b.ratio = smallBar(op, c.State)
	case size <= 64*kib:
		b.ratio = middleBar(op, size)
	case size >= mib:
		b.ratio = largeBar(op, size, alloc)
	}
	return b
}

func smallBar(op, state string) float64 {
	switch op {
	case "latency":
		return 1
	case "allreduce", "barrier":
		return 1.8
	case "allgather", "alltoall", "reducescatter":
		return 1.3
	case "bcast", "reduce":
		if state == contest.Near {
			return 1.3
		}
		return 1
	}
	return 0
}

func middleBar(op string, size int) float64 {
	switch {
	case op == "bw" && size <= 4*kib:
		return 1
	case op == "allreduce" && size == 64*kib:
		return 3
	}
	return 1.3
}

func largeBar(op string, size int, alloc bool) float64 {
	switch op {
	case "bw":
		return 2
	case "allreduce":
		switch {
		case alloc:
			return 5
		case size >= 64*mib:
			return 4
		case size >= 16*mib:
			return 3
		}
		return 2.5
	case "allgather", "alltoall", "reducescatter", "bcast", "reduce":
		return 1.7
	}
	return 0
}

// met reports whether ours has reached b in c; ok is false if that cannot be said.
func (b bar) met(c report.Cell, ours string) (met, ok bool) {
	ratio := func(by report.Figure) (float64, bool) {
		if b.against != "" {
			return c.RatioTo(ours, by, b.against)
		}
		return c.Ratio(ours, by)
	}
	got, ok := ratio(report.ByMedian)
	if b.both {
		if b2b, also := ratio(report.ByB2B); also {
			got = min(got, b2b)
		}
	}
	return got >= b.ratio, ok && b.ratio > 0
}

// in shows b as the column of a table: whether ours has reached it in c.
func (b bar) in(c report.Cell, ours string) string {
	met, ok := b.met(c, ours)
	if !ok {
		return "-"
	}
	return report.FormatBar(fmt.Sprintf("%.1f", b.ratio), met)
}
