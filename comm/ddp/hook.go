package ddp

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
)

// A Hook averages the gradients of buckets in its own way, such as with fewer bytes. Average is
// called for one bucket at a time, in the same order on all ranks, on a goroutine of its own while
// backward computes the next. It leaves the optimiser's gradients in b.Grads, the same bits on all
// ranks. It may use all of c, which has no other user. Its error is returned by Finish, too. String
// returns the settings, which must be equal on all ranks.
type Hook interface {
	fmt.Stringer
	Average(ctx context.Context, c *comm.Comm, b *Bucket) error
}

// A StatefulHook is a Hook with memory of parameters from step to step, for snapshots. Memory
// returns that memory; its names begin with the Hook's. It is called before the first step, with
// all parameters that the Hook averages. Values then stored there replace the Hook's memory.
type StatefulHook interface {
	Hook
	Memory(params []*Param) (Memory, error)
}

// A Memory is a Hook's memory, on the host. It may be read and written between steps.
type Memory struct {
	Shared []Slice // the same bits on all ranks
	// Own is each rank's own memory, float32, such as unsent numbers. Each rank adds its Own to its
	// gradients, and only their average has an effect. So ranks may exchange their Owns, or all use
	// the average.
	Own []Slice
}

// MemoryOf returns the memory of h for these parameters, or nothing if h is nil or no StatefulHook.
// Call MemoryOf before the first step, before New or after. Package snapshot saves and loads it.
func MemoryOf(h Hook, params []*Param) (Memory, error) {
	r, ok := h.(StatefulHook)
	if !ok {
		return Memory{}, nil
	}
	return r.Memory(slices.DeleteFunc(slices.Clone(params), func(p *Param) bool { return p.Row != 0 }))
}

// A Bucket is a Hook's view of a bucket. It is the same pointer in every step until the buckets are
// made anew, after the first step or while TuneBuckets tries several sizes. A Hook may use it as a
// key for its memory, or the names of the parameters, which stay.
type Bucket struct {
	Grads  []float32    // of all its parameters, in order
	Params []BucketPart // the parameters
	Step   int          // steps done since New
}

// A BucketPart is one parameter's gradient in a Bucket.
type BucketPart struct {
	Name  string
	Shape []int // nil: one dimension
	Grad  []float32
}

// newHookReducer returns the reducer of b that calls the Hook.
func (d *DDP) newHookReducer(b *bucket) reducer {
	seen := &Bucket{Grads: comm.Slice[float32](b.grads)}
	for _, i := range b.params {
		p := d.params[i]
		seen.Params = append(seen.Params, BucketPart{p.Name, p.Shape, comm.Slice[float32](p.Grad)})
	}
	return d.runner.newTask(func(ctx context.Context) error {
		seen.Step = d.stats.Steps
		return d.opts.Hook.Average(ctx, d.hookComm, seen)
	})
}
