package snapshot

import (
	"context"
	"fmt"

	"gompi/comm"
	"gompi/comm/ddp"
)

// HookMemory is what Load has done with the memory of the Hook.
type HookMemory int

// What it may have done.
const (
	NoMemory HookMemory = iota // nothing: neither the file nor the State has any
	Restored                   // each rank has its own again
	Averaged                   // another number of ranks has saved: each has the average of theirs
	Absent                     // nothing: the file has none of this Hook, whose memory stays as it is
	Unused                     // nothing: the file has some, and the State has none
)

// String says it in a few words, after "memory of the hook: ".
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

// inUse reports whether the memory of the file is that of the State.
func (m HookMemory) inUse() bool { return m == Restored || m == Averaged }

// A gatherer collects the memory that ranks have for themselves on rank 0, slice by slice. All
// ranks call its methods for the same slices.
type gatherer struct {
	c      *comm.Comm
	slices []ddp.Slice // that are left
	all    []float32   // on rank 0: one slice of all ranks
	err    error
}

// next returns, on rank 0, the next slice of rank 0, of rank 1, and so on, valid until the next
// call. After an error it does nothing but return that.
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

// rest collects what is left, and forgets it.
func (g *gatherer) rest(ctx context.Context) error {
	for len(g.slices) > 0 && g.err == nil {
		_, _ = g.next(ctx) // keeps its error
	}
	return g.err
}

// loadOwn gives each rank its own memory again, or the average of what ranks have saved. Rank 0
// reads.
func loadOwn(ctx context.Context, c *comm.Comm, r *reader, ranks int, slices []ddp.Slice) error {
	var all []float32 // on rank 0: one slice of all ranks that have saved
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

// resize returns s, or memory with room for more, with n elements of any values.
func resize(s []float32, n int) []float32 {
	if n > cap(s) {
		return make([]float32, n)
	}
	return s[:n]
}
