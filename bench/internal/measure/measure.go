// Package measure times the operations of comm. The rule: a barrier before every
// timed iteration, and an iteration takes as long as it takes the slowest rank.
// The time without barriers, back to back, is measured beside it. What a call
// delivered is checked once for each size, before it is timed.
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

// Options say what to measure. They are equal on all ranks.
type Options struct {
	Ops     []string // see Names
	Sizes   []int    // bytes of one rank's vector, or of the block
	Type    mem.Type
	Redop   mem.Op
	InPlace bool       // the in-place forms of the operations that have one
	Check   bool       // check what the calls delivered
	Space   mem.Space  // where the vectors are; nil: host memory
	Alloc   bool       // they are host memory from Comm.Alloc
	Stream  ddp.Stream // of that Space, if it is a device's: gradients are computed on it
	Budget  time.Duration
}

// DefaultBudget is how long a cell is timed for, and again back to back. It is
// long enough for a median of small operations and short enough for many sizes.
const DefaultBudget = 60 * time.Millisecond

// Validate reports what is wrong with o for np ranks. It says the same on every
// rank.
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

// Run measures every operation at every size, on all ranks of c together, and
// calls emit on rank 0 with each cell when it is known. It stops at the first
// error. Memory for the largest size is held at a time, up to c.Size() times
// that for each of the two vectors.
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
			cell:   cell{ctx: ctx, c: c, op: op, rank: c.Rank(), np: c.Size(), space: o.Space, stream: o.Stream, alloc: o.Alloc, redop: o.Redop, inPlace: op.isInPlace(o), inputs: inputs},
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
	runtime.GC() // the memory of the operation before must not go while this one is timed
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
