//go:build cgo

package main

import (
	"slices"
	"testing"

	"gompi/comm/internal/mpi/comms"
)

// C finds what Go lends where Go has it.
func TestLayoutOfTheLease(t *testing.T) {
	if c, g := cLayout(), comms.LeaseLayout(); !slices.Equal(c, g) {
		t.Errorf("lease.h has the offsets %v, Go %v", c, g)
	}
}
