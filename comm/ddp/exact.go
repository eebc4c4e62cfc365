package ddp

import (
	"context"
	"fmt"
	"math"

	"gompi/comm"
)

// An exactReducer sums in fixed point: gradients become multiples of a quantum, as int64, whose sum
// is the same in any order and on any number of ranks.
type exactReducer struct {
	collective
	grads   []float32
	sums    []int64 // of each gradient; the last counts the numbers out of range
	quantum float64
	most    float64 // largest magnitude of an addend, so that no sum overflows
	names   string
	release func(ctx context.Context)
}

func newExactReducer(ctx context.Context, d *DDP, b *bucket) (*exactReducer, error) {
	sums, err := comm.Alloc[int64](ctx, d.c, b.grads.Len()+1)
	if err != nil {
		return nil, err
	}
	all := comm.Of(sums)
	w := &exactReducer{
		collective: collective{op: d.c.AllreduceInit(all, all, comm.Sum)},
		grads:      comm.Slice[float32](b.grads), sums: sums,
		quantum: d.opts.Quantum, most: mostOf(d.opts.Quantum, d.c.Size()*d.opts.Accumulate),
		names: b.names,
	}
	w.release = func(ctx context.Context) { _ = comm.Free(ctx, d.c, sums) }
	return w, nil
}

// mostOf returns the largest magnitude of each of a number of addends whose sum cannot overflow.
func mostOf(quantum float64, addends int) float64 {
	return quantum * float64((1<<62)/max(1, addends))
}

// fixedPoint returns v in multiples of quantum, rounded to the nearest. ok is false if v is larger
// than most, or NaN.
func fixedPoint(v float32, quantum, most float64) (x int64, ok bool) {
	if !(math.Abs(float64(v)) <= most) {
		return 0, false
	}
	return int64(math.RoundToEven(float64(v) / quantum)), true
}

// fixedPointRange is the error for gradients out of range.
func fixedPointRange(names string, quantum, most float64) error {
	return fmt.Errorf("gradients of %s are not finite, or larger than %.3g: want a Quantum of more than %g, or smaller gradients",
		names, most, quantum)
}

// add adds a pass's gradient to the sums from index at on, and zeroes the gradient for the next
// pass.
func (w *exactReducer) add(at int, grad []float32) {
	sums := w.sums[at:][:len(grad)]
	for i, g := range grad {
		x, ok := fixedPoint(g, w.quantum, w.most)
		if !ok {
			w.sums[len(w.grads)]++
		}
		sums[i] += x
	}
	clear(grad)
}

func (w *exactReducer) wait(ctx context.Context) error {
	if err := w.collective.wait(ctx); err != nil {
		return err
	}
	if w.sums[len(w.grads)] > 0 {
		return fixedPointRange(w.names, w.quantum, w.most)
	}
	for i, x := range w.sums[:len(w.grads)] {
		w.grads[i] = float32(float64(x) * w.quantum)
	}
	clear(w.sums)
	return nil
}

func (w *exactReducer) free(ctx context.Context) { w.release(ctx) }
