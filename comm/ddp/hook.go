package ddp

import (
	"context"
	"fmt"
	"sync"

	"gompi/comm"
)

// A Hook averages the gradients of buckets in its own way: with fewer bytes, say. It is called for
// one bucket at a time, in the same order on all ranks, on a goroutine of its own while backward
// computes the next. Average leaves in b.Grads what the optimiser is to see, the same bits on all
// ranks; it may use all of c, which nobody else uses. If it returns an error, so does Finish.
// String says what must be equal on all ranks, its settings.
type Hook interface {
	fmt.Stringer
	Average(ctx context.Context, c *comm.Comm, b *Bucket) error
}

// A Bucket is what a Hook sees of one. It is the same pointer in every step, until the buckets are
// made anew: after the first step, or while TuneBuckets tries several sizes. A Hook may use it as a key
// for what it remembers of a bucket, or the names of the parameters, which stay.
type Bucket struct {
	Grads  []float32    // of all its parameters, one after the other
	Params []BucketPart // the parameters
	Step   int          // steps done before this one
}

// A BucketPart is one parameter's gradient in a Bucket.
type BucketPart struct {
	Name  string
	Shape []int // nil: one dimension
	Grad  []float32
}

// A hookRunner calls hooks, one after the other, on a goroutine of its own.
type hookRunner struct {
	c      *comm.Comm // of its own, since its calls block beside those of the DDP
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   chan *hookCall
	over   sync.WaitGroup
}

// A hookCall is the reducer of a bucket that a hookRunner calls.
type hookCall struct {
	runner *hookRunner
	run    func(ctx context.Context, c *comm.Comm) error
	done   chan error
}

// newHookRunner returns one that queues up to most calls.
func newHookRunner(ctx context.Context, c *comm.Comm, most int) (*hookRunner, error) {
	own, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	v := &hookRunner{c: own, work: make(chan *hookCall, most)}
	v.ctx, v.cancel = context.WithCancelCause(context.Background())
	v.over.Go(v.serve)
	return v, nil
}

// serve runs calls until close. After one has failed the communicator may be broken, and ranks
// may differ in what they have done, so nothing else is begun.
func (v *hookRunner) serve() {
	var failed error
	for e := range v.work {
		if failed == nil {
			failed = e.run(v.ctx, v.c)
		}
		e.done <- failed
	}
}

// close waits for the call that is under way, whose context ends.
func (v *hookRunner) close(ctx context.Context) error {
	v.cancel(comm.ErrClosed)
	close(v.work)
	v.over.Wait()
	return v.c.Close(ctx)
}

func (v *hookRunner) newCall(run func(ctx context.Context, c *comm.Comm) error) *hookCall {
	return &hookCall{v, run, make(chan error, 1)}
}

func (e *hookCall) start() { e.runner.work <- e } // has room

// wait ends the hook's context, too, if ctx ends first: the other ranks count on this one.
func (e *hookCall) wait(ctx context.Context) error {
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		e.runner.cancel(context.Cause(ctx))
		return <-e.done
	}
}

func (e *hookCall) free(context.Context) {}

// newHookReducer returns the reducer of b that is the Hook.
func (d *DDP) newHookReducer(b *bucket) reducer {
	seen := &Bucket{Grads: comm.Slice[float32](b.grads)}
	for _, i := range b.params {
		p := d.params[i]
		seen.Params = append(seen.Params, BucketPart{p.Name, p.Shape, comm.Slice[float32](p.Grad)})
	}
	return d.hooks.newCall(func(ctx context.Context, c *comm.Comm) error {
		seen.Step = d.stats.Steps
		return d.opts.Hook.Average(ctx, c, seen)
	})
}
