package ddp

import (
	"context"
	"fmt"

	"gompi/comm"
)

// A Hook averages the gradients of buckets in its own way: with fewer bytes, say. It is called for
// one bucket at a time, in the same order on all ranks, on a goroutine of its own while backward
// computes the next. Average leaves in b.Grads what the optimiser is to see, the same bits on all
// ranks; it may use all of c, which has no other user. If it returns an error, so does Finish.
// String says what must be equal on all ranks, its settings.
type Hook interface {
	fmt.Stringer
	Average(ctx context.Context, c *comm.Comm, b *Bucket) error
}

// A StatefulHook is a Hook that remembers something of parameters from step to step, for snapshots.
// Memory returns where: names begin with that of the Hook. It is called before the first step, with
// all parameters that the Hook averages, and what is then written there counts as remembered.
type StatefulHook interface {
	Hook
	Memory(params []*Param) (Memory, error)
}

// A Memory is what a Hook remembers, in host memory. It may be read and written between steps.
type Memory struct {
	Shared []Slice // the same bits on all ranks
	// Own is what each rank has for itself, float32, such as what it has not sent. It is added to
	// its gradients, of which the average counts: so ranks may exchange it, or all take the
	// average.
	Own []Slice
}

// MemoryOf returns what h remembers of these parameters, nothing if h is nil or no StatefulHook. It
// is called before the first step, before New or after it. Package snapshot saves and loads it.
func MemoryOf(h Hook, params []*Param) (Memory, error) {
	r, ok := h.(StatefulHook)
	if !ok {
		return Memory{}, nil
	}
	var dense []*Param
	for _, p := range params {
		if p.Row == 0 {
			dense = append(dense, p)
		}
	}
	return r.Memory(dense)
}

// A Bucket is what a Hook sees of one. It is the same pointer in every step, until the buckets are
// made anew: after the first step, or while TuneBuckets tries several sizes. A Hook may use it as a
// key for what it remembers of a bucket, or the names of the parameters, which stay.
type Bucket struct {
	Grads  []float32    // of all its parameters, one after the other
	Params []BucketPart // the parameters
	Step   int          // steps done since New
}

// A BucketPart is one parameter's gradient in a Bucket.
type BucketPart struct {
	Name  string
	Shape []int // nil: one dimension
	Grad  []float32
}

// newHookReducer returns the reducer of b that is the Hook.
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
