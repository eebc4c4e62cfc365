//go:build cgo

package main

import (
	"slices"
	"testing"

	"gompi/comm/internal/mpi/comms"
	"gompi/internal/stats"
)

// C finds what Go lends where Go has it.
func TestLayoutOfTheLease(t *testing.T) {
	if c, g := cLayout(), comms.LeaseLayout(); !slices.Equal(c, g) {
		t.Errorf("lease.h has the offsets %v, Go %v", c, g)
	}
}

// C counts where Go reads.
func TestLayoutOfTheStatistics(t *testing.T) {
	if c, g := cStatsLayout(), stats.Layout(); !slices.Equal(c, g) {
		t.Errorf("stats.h has the offsets %v, Go %v", c, g)
	}
}
