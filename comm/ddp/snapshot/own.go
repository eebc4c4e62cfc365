package snapshot

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp"
)

// HookMemory is Load's treatment of the Hook's memory.
type HookMemory int

// The kinds of treatment.
const (
	NoMemory HookMemory = iota // neither the file nor the State has memory
	Restored                   // each rank has its own again
	Averaged                   // saved by another number of ranks: each rank has their average
	Absent                     // the file has no memory of this Hook, whose own stays unchanged
	Unused                     // the file has memory, and the State has none
)

// String describes m in a few words, after "memory of the hook: ".
func (m HookMemory) String() string {
	switch m {
	case NoMemory:
		return "none"
	case Restored:
		return "restored"
	case Averaged:
		return "each rank has the average, as another number of ranks has saved it"
	case Absent:
		return "not in the file, it starts with zeros"
	case Unused:
		return "in the file, and not used"
	}
	return fmt.Sprintf("HookMemory(%d)", int(m))
}

// inUse reports whether the file's memory is now the State's.
func (m HookMemory) inUse() bool { return m == Restored || m == Averaged }

// A gatherer collects the ranks' own memory on rank 0, slice by slice. All ranks call its methods
// for the same slices.
type gatherer struct {
	c      *comm.Comm
	slices []ddp.Slice // the remaining slices
	all    []float32   // on rank 0: one slice of all ranks
	err    error
}

// next returns, on rank 0, the next slice of rank 0, of rank 1, and so on, valid until the next
// call. After an error it returns that error.
func (g *gatherer) next(ctx context.Context) ([]byte, error) {
	if g.err != nil {
		return nil, g.err
	}
	own := comm.Slice[float32](g.slices[0].Data)
	g.slices = g.slices[1:]
	if g.c.Rank() == 0 {
		g.all = resize(g.all, len(own)*g.c.Size())
	}
	g.err = comm.Gather(ctx, g.c, 0, own, g.all)
	return comm.Of(g.all).HostSlice(), g.err
}

// rest gathers the remaining slices, without use for them.
func (g *gatherer) rest(ctx context.Context) error {
	for len(g.slices) > 0 && g.err == nil {
		_, _ = g.next(ctx) // keeps its error
	}
	return g.err
}

// loadOwn restores each rank's own memory, or sets it to the average of the saved ranks'. Rank 0
// reads.
func loadOwn(ctx context.Context, c *comm.Comm, r *reader, ranks int, slices []ddp.Slice) error {
	var all []float32 // on rank 0: one slice of all saved ranks
	var failed error
	for _, slice := range slices {
		own := comm.Slice[float32](slice.Data)
		if c.Rank() == 0 {
			all = resize(all, len(own)*ranks)
			if failed == nil { // the other ranks wait for numbers all the same
				failed = readNumbers(r.in, comm.Of(all))
			}
		}
		var err error
		if ranks == c.Size() {
			err = comm.Scatter(ctx, c, 0, all, own)
		} else {
			if c.Rank() == 0 {
				average(own, all)
			}
			err = comm.Bcast(ctx, c, 0, own)
		}
		if err != nil {
			return err
		}
	}
	return ddp.OnRankZero(ctx, c, func() error { return failed })
}

// average sets dst to the average of the slices of its length in all.
func average(dst, all []float32) {
	if len(dst) == 0 {
		return
	}
	ranks := len(all) / len(dst)
	for i := range dst {
		var sum float64
		for r := range ranks {
			sum += float64(all[r*len(dst)+i])
		}
		dst[i] = float32(sum / float64(ranks))
	}
}

// resize returns s, or larger memory, with n elements of any values.
func resize(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
