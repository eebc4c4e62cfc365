package ddp

import (
	"context"

	"gompi/comm"
	"gompi/comm/ddp/internal/sums"
)

// An exactReducer sums in fixed point.
type exactReducer struct {
	collective
	grads []float32
	sums  []int64 // of each gradient; the last counts the numbers out of range
	fixed sums.FixedPoint
	names string
	c     *comm.Comm
}

func newExactReducer(ctx context.Context, d *DDP, b *bucket) (*exactReducer, error) {
	total, err := comm.Alloc[int64](ctx, d.c, b.grads.Len()+1)
	if err != nil {
		return nil, err
	}
	all := comm.Of(total)
	return &exactReducer{
		collective: collective{op: d.c.AllreduceInit(all, all, comm.Sum)},
		grads:      comm.Slice[float32](b.grads), sums: total,
		fixed: sums.NewFixedPoint(d.opts.Quantum, d.c.Size()*d.opts.Accumulate), names: b.names, c: d.c,
	}, nil
}

// add adds a pass's gradient to the sums from index at on, and zeroes the gradient for the next
// pass.
func (w *exactReducer) add(at int, grad []float32) {
	to := w.sums[at:][:len(grad)]
	for i, g := range grad {
		x, ok := w.fixed.Of(g)
		if !ok {
			w.sums[len(w.grads)]++
		}
		to[i] += x
	}
	clear(grad)
}

func (w *exactReducer) wait(ctx context.Context) error {
	if err := w.collective.wait(ctx); err != nil {
		return err
	}
	if w.sums[len(w.grads)] > 0 {
		return w.fixed.OutOfRange(w.names)
	}
	for i, x := range w.sums[:len(w.grads)] {
		w.grads[i] = w.fixed.Float(x)
	}
	clear(w.sums)
	return nil
}

func (w *exactReducer) free(ctx context.Context) { _ = comm.Free(ctx, w.c, w.sums) }
