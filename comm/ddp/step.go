package ddp

import (
	"context"
	"fmt"
	"time"

	"gompi/comm"
)

// ZeroGrad sets all gradients to zero. It belongs between a Finish and the next backward pass. On a
// device it enqueues this on the stream, and Finish returns its error.
func (d *DDP) ZeroGrad() {
	d.trace.Begin()
	d.clearGrads()
}

func (d *DDP) clearGrads() {
	for _, b := range d.buckets {
		switch {
		case b.rows != nil:
		case d.stream == nil:
			clear(b.grads.HostSlice())
		default:
			if err := d.stream.Clear(b.grads); err != nil {
				d.note(fmt.Errorf("ddp: %w", err))
			}
		}
	}
}

// Ready declares that this backward pass has added all of its part to Params[i].Grad. Backward
// calls it once for every parameter, best from the last to the first. After the last pass of a step
// the gradient may be under way: it must not be touched until Finish returns. Ready never waits for
// another rank; Finish returns its errors.
func (d *DDP) Ready(i int) {
	switch {
	case !d.mayBeReady(i):
	case d.rows[i] != nil:
		d.note(fmt.Errorf("ddp: Ready(%d): %q has rows: want ReadyRows", i, d.params[i].Name))
	default:
		if w := d.home[i].exact; w != nil {
			w.add(d.offset[i], comm.Slice[float32](d.params[i].Grad))
		}
		d.endPass(i)
	}
}

// mayBeReady reports whether a pass for parameter i may end.
func (d *DDP) mayBeReady(i int) bool {
	switch {
	case d.err != nil:
	case i < 0 || i >= len(d.params):
		d.err = fmt.Errorf("ddp: Ready(%d): want 0 to %d", i, len(d.params)-1)
	case d.passes[i] == d.opts.Accumulate:
		d.err = fmt.Errorf("ddp: Ready was called more than %d times in one step for %q",
			d.opts.Accumulate, d.params[i].Name)
	}
	return d.err == nil
}

// endPass notes a pass for parameter i.
func (d *DDP) endPass(i int) {
	d.used.mark(i)
	if d.passes[i]++; d.passes[i] == d.opts.Accumulate {
		d.endStep(i)
	}
}

// endStep notes that parameter i is complete in this step.
func (d *DDP) endStep(i int) {
	d.complete = append(d.complete, i)
	d.home[i].pending--
	if d.opts.NoOverlap {
		return
	}
	begin := time.Now()
	d.startComplete()
	if d.stream == nil { // the device computes meanwhile
		d.stats.Exposed += time.Since(begin)
	}
}

// startComplete starts the averages of complete buckets, always in the order of the buckets: a
// bucket that is complete early waits, since all ranks must start the same operations in the same
// order.
func (d *DDP) startComplete() {
	for d.err == nil && d.started < len(d.buckets) && d.buckets[d.started].pending == 0 {
		b := d.buckets[d.started]
		switch {
		case !d.trainsAlone():
			b.reducer.start()
		case b.rows != nil:
			b.rows.KeepOwn()
		}
		d.started++
	}
}

// Finish waits until every gradient is the average over ranks. It fails if Ready was called too
// rarely or too often for a parameter, or if averaging failed. After an error the DDP can only be
// closed.
func (d *DDP) Finish(ctx context.Context) error {
	d.trace.Finish()
	if err := d.finish(ctx); err != nil {
		d.note(err)
		return d.err
	}
	d.trace.End(d.stats.Steps, func(i int) (int, string) { return d.buckets[i].bytes(), d.buckets[i].names })
	d.note(d.improveBuckets(ctx))
	return d.err
}

func (d *DDP) finish(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	begin := time.Now()
	if d.opts.FindUnused {
		d.SkipRest()
	}
	if missing := d.missing(); missing != "" {
		return fmt.Errorf("ddp: no gradient for %s: Ready was called fewer than %d times", missing, d.opts.Accumulate)
	}
	d.startComplete()
	if d.stream != nil {
		if err := d.syncStream(); err != nil {
			return err
		}
		begin = time.Now()
	}
	d.waitForAverages(ctx)
	if d.err != nil {
		return d.err
	}
	d.stats.Exposed += time.Since(begin)
	for _, b := range d.buckets {
		b.pending = len(b.params)
		if !d.trainsAlone() {
			d.stats.Bytes += int64(b.bytes())
		}
	}
	clear(d.passes)
	d.started = 0
	d.stats.Steps++
	return nil
}

func (d *DDP) waitForAverages(ctx context.Context) {
	if d.trainsAlone() {
		d.used.keepOwn()
	} else {
		d.used.start()
		for i := 0; i < len(d.buckets) && d.err == nil; i++ {
			d.note(ofBucket(i, d.buckets[i].reducer.wait(ctx)))
		}
		if d.err == nil {
			d.note(d.used.wait(ctx))
		}
	}
	if d.err == nil {
		d.note(d.joined.wait(ctx))
	}
}

// improveBuckets improves the buckets: after the first step, which has shown the order in which
// backward reaches parameters, and while TuneBuckets tries sizes.
func (d *DDP) improveBuckets(ctx context.Context) error {
	order := d.complete
	d.complete = d.complete[:0]
	var err error
	switch {
	case d.opts.Shard: // shards stay where they are
	case d.stats.Steps == 1:
		err = d.afterFirst(ctx, order)
	default:
		err = d.tune(ctx)
	}
	if err != nil {
		return fmt.Errorf("ddp: buckets: %w", err)
	}
	return nil
}

// missing names the parameters whose gradients are not ready, at most four.
func (d *DDP) missing() string {
	var names []string
	for i, n := range d.passes {
		if n < d.opts.Accumulate {
			names = append(names, fmt.Sprintf("%q", d.params[i].Name))
		}
	}
	return few(names, 4)
}
