// Package measure times the operations of comm. A barrier precedes every timed iteration, and the
// slowest rank's time counts. The time without barriers, back to back, is measured, too. For each
// size, the results of a call are checked once before calls are timed.
package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"gompi/bench/internal/result"
	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/mem"
)

// Options configure a measurement. They are equal on all ranks.
type Options struct {
	Ops     []string // see Names
	Sizes   []int    // bytes of one rank's vector, or of the block
	Type    mem.Type
	Redop   mem.Op
	InPlace bool       // use the in-place forms, of operations that have one
	Check   bool       // check the results of calls
	Space   mem.Space  // of the vectors; nil: host memory
	Alloc   bool       // the vectors are host memory from Comm.Alloc
	Stream  ddp.Stream // of a device's Space: gradients are computed on it
	Budget  time.Duration
}

// DefaultBudget is the time for the calls of a cell with barriers, and again for the calls back to
// back. It is long enough for a stable median of small operations and short enough for many sizes.
const DefaultBudget = 60 * time.Millisecond

// Validate returns an error if o is invalid for np ranks, the same on every rank.
func (o Options) Validate(np int) error {
	if len(o.Ops) == 0 {
		return fmt.Errorf("no operation: want some of %v", Names())
	}
	for _, name := range o.Ops {
		op, err := find(name)
		if err != nil {
			return err
		}
		if np < op.ranks {
			return fmt.Errorf("%s with %d rank: want at least %d", name, np, op.ranks)
		}
		if op.reduces && !o.Redop.Defined(o.Type) {
			return fmt.Errorf("operator %v is not defined for %v", o.Redop, o.Type)
		}
	}
	for _, size := range o.Sizes {
		if size < 0 || size%o.Type.Size() != 0 {
			return fmt.Errorf("size %d: want a multiple of the %d bytes of %v", size, o.Type.Size(), o.Type)
		}
	}
	return nil
}

// Run measures every operation at every size, on all ranks of c together. On rank 0 it calls emit
// with each cell's row, as soon as the row is known. It stops at the first error. Run allocates
// memory for the largest size: for each of the two vectors, up to c.Size() times that size.
func Run(ctx context.Context, c *comm.Comm, o Options, emit func(result.Row) error) error {
	if err := o.Validate(c.Size()); err != nil {
		return err
	}
	inputs, err := newPatterns(o.Type, o.Redop, c.Size())
	if err != nil {
		return err
	}
	for _, name := range o.Ops {
		op, err := find(name)
		if err != nil {
			return err
		}
		m := &meter{
			cell: cell{ctx: ctx, c: c, op: op, rank: c.Rank(), np: c.Size(), space: o.Space, stream: o.Stream,
				alloc: o.Alloc, redop: o.Redop, inPlace: op.isInPlace(o), inputs: inputs},
			o:      o,
			budget: o.Budget,
		}
		if err := m.all(emit); err != nil {
			return err
		}
	}
	return nil
}

// all measures the operation at every size.
func (m *meter) all(emit func(result.Row) error) (err error) {
	sizes := m.op.sizes(m.o)
	most := 0
	for _, size := range sizes {
		most = max(most, size)
	}
	if err := m.allocate(most / m.o.Type.Size()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.free()) }()
	runtime.GC() // frees the last operation's memory before this one is timed
	for _, size := range sizes {
		m.bind(size / m.o.Type.Size())
		cell, err := m.measure()
		if err != nil {
			return fmt.Errorf("%s of %s: %w", m.op.label(m.o), result.Bytes(size), err)
		}
		if m.rank != 0 {
			continue
		}
		if err := emit(cell); err != nil {
			return err
		}
	}
	return nil
}
