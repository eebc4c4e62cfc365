package ctl

import (
	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
)

// Fence reports that all ranks of the host, which are clients of PMI-1, are in its barrier, and
// the values that they have put since the last barrier.
type Fence struct{ Puts []string } // keys and values in turn

func (m *Fence) fields(c *wire.Codec) { c.Strings(&m.Puts, maxPuts, pmi.MaxValue) }

// Fenced announces that all ranks of the job are in PMI's barrier, and the values that they have
// put since the last barrier.
type Fenced struct{ Puts []string } // keys and values in turn

func (m *Fenced) fields(c *wire.Codec) { c.Strings(&m.Puts, maxPuts, pmi.MaxValue) }

// maxPuts bounds keys and values together.
const maxPuts = 2 * wire.MaxRanks
