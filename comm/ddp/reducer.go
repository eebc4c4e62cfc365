package ddp

import (
	"context"

	"gompi/comm"
)

// A reducer averages the gradients of one bucket as Finish promises. All ranks start the reducers
// of their buckets in the same order.
type reducer interface {
	start() // returns at once
	wait(ctx context.Context) error
	free(ctx context.Context) // while no operation is under way
}

// newReducer returns the reducer for the options.
func (d *DDP) newReducer(ctx context.Context, b *bucket) (reducer, error) {
	switch {
	case d.stream != nil:
		return d.newDeviceReducer(b)
	case d.opts.Hook != nil:
		return d.newHookReducer(b), nil
	case d.opts.Quantum != 0:
		var err error
		b.exact, err = newExactReducer(ctx, d, b)
		return b.exact, err
	case d.opts.Shard:
		own, counts := ownPart(d.c, b.grads)
		return &collective{op: d.c.ReduceScatterInit(b.grads, own, counts, comm.Avg)}, nil
	}
	return &collective{op: d.c.AllreduceInit(b.grads, b.grads, comm.Avg)}, nil
}

// A collective is the reducer that needs one operation.
type collective struct {
	op *comm.Persistent
	r  comm.Request
}

func (w *collective) start() { w.r = w.op.Start() }

func (w *collective) wait(ctx context.Context) error {
	_, err := w.r.Wait(ctx)
	return err
}

func (w *collective) free(context.Context) {}
