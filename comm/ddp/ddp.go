package ddp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gompi/comm"
)

// Options are the settings of New. The zero value is right for most jobs. All
// ranks must pass the same.
type Options struct {
	// FirstBucketBytes is the most bytes of the bucket that is sent first;
	// 0 means 1 MiB. It is small so that communication begins early.
	FirstBucketBytes int
	// BucketBytes is the most bytes of each other bucket; 0 means 25 MiB.
	BucketBytes int
	// Accumulate is the number of backward passes whose gradients add up
	// before they are averaged over ranks; 0 means 1.
	Accumulate int
	// NoOverlap makes Finish do all communication, for comparison.
	NoOverlap bool
}

func (o Options) withDefaults() (Options, error) {
	if o.FirstBucketBytes < 0 || o.BucketBytes < 0 || o.Accumulate < 0 {
		return o, fmt.Errorf("ddp: options %+v: want no negative number", o)
	}
	if o.FirstBucketBytes == 0 {
		o.FirstBucketBytes = 1 << 20
	}
	if o.BucketBytes == 0 {
		o.BucketBytes = 25 << 20
	}
	o.Accumulate = max(1, o.Accumulate)
	return o, nil
}

// A DDP keeps the parameters of one model equal on all ranks by averaging
// their gradients. Its methods are called from one goroutine at a time.
type DDP struct {
	c       *comm.Comm
	opts    Options
	params  []*Param
	buckets []*bucket
	home    []*bucket // of each parameter
	passes  []int     // calls of Ready in this step, for each parameter
	started int       // buckets whose allreduce has begun in this step
	err     error     // why this DDP can no longer be used
	stats   Stats
}

// Stats say what communication has cost since New.
type Stats struct {
	Steps int
	// Exposed is the time that Ready and Finish took: communication, and
	// waiting for slower ranks, that nothing else was done meanwhile.
	Exposed time.Duration
	// Bytes is the size of all gradients averaged.
	Bytes int64
}

// New prepares the training of a model with these parameters. It compares
// their names and lengths over all ranks of c, copies rank 0's Data to the
// others and sets every Grad to zeroed memory of its own. New is collective
// and keeps a duplicate of c for itself, so that the caller may use c while
// gradients travel.
func New(ctx context.Context, c *comm.Comm, params []*Param, opts Options) (*DDP, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := sameModel(ctx, c, params, opts); err != nil {
		return nil, err
	}
	own, err := c.Dup(ctx)
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	d := &DDP{c: own, opts: opts, params: params,
		home: make([]*bucket, len(params)), passes: make([]int, len(params))}
	if err = d.makeBuckets(ctx); err == nil {
		err = d.spreadData(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ddp: %w", err), d.Close(ctx))
	}
	return d, nil
}

func (d *DDP) makeBuckets(ctx context.Context) error {
	lengths := make([]int, len(d.params))
	for i, p := range d.params {
		lengths[i] = len(p.Data)
	}
	for _, members := range layout(lengths, d.opts.FirstBucketBytes, d.opts.BucketBytes) {
		n := 0
		for _, i := range members {
			n += lengths[i]
		}
		grads, err := comm.Alloc[float32](ctx, d.c, n)
		if err != nil {
			return err
		}
		b := &bucket{params: members, grads: grads, pending: len(members)}
		d.buckets = append(d.buckets, b)
		buf := comm.Of(grads)
		b.sum = d.c.AllreduceInit(buf, buf, comm.Avg)
		for _, i := range members {
			d.home[i] = b
			d.params[i].Grad, grads = grads[:lengths[i]:lengths[i]], grads[lengths[i]:]
		}
	}
	return nil
}

// spreadData copies rank 0's parameters to the others. The buckets, not yet in
// use, carry them, so that a model of many small parameters needs few messages.
func (d *DDP) spreadData(ctx context.Context) error {
	for _, b := range d.buckets {
		for _, i := range b.params {
			copy(d.params[i].Grad, d.params[i].Data)
		}
		if err := comm.Bcast(ctx, d.c, 0, b.grads); err != nil {
			return err
		}
		for _, i := range b.params {
			copy(d.params[i].Data, d.params[i].Grad)
		}
	}
	d.ZeroGrad()
	return nil
}

// ZeroGrad sets all gradients to zero. It belongs between one Finish and the
// backward pass of the next step.
func (d *DDP) ZeroGrad() {
	for _, b := range d.buckets {
		clear(b.grads)
	}
}

// Ready says that this backward pass has added to Params[i].Grad all it will.
// Backward calls it once for every parameter, best from the last to the first.
// In the last pass of a step the gradient must not be touched from then on
// until Finish returns: it may be on its way. Ready never waits for another
// rank; if something is wrong, Finish says so.
func (d *DDP) Ready(i int) {
	switch {
	case d.err != nil:
		return
	case i < 0 || i >= len(d.params):
		d.err = fmt.Errorf("ddp: Ready(%d): want 0 to %d", i, len(d.params)-1)
		return
	case d.passes[i] == d.opts.Accumulate:
		d.err = fmt.Errorf("ddp: Ready was called more than %d times in one step for %q",
			d.opts.Accumulate, d.params[i].Name)
		return
	}
	d.passes[i]++
	if d.passes[i] < d.opts.Accumulate {
		return
	}
	d.home[i].pending--
	if !d.opts.NoOverlap {
		begin := time.Now()
		d.startComplete()
		d.stats.Exposed += time.Since(begin)
	}
}

// startComplete begins the allreduces of complete buckets, always in the order
// of the buckets: a bucket that is complete early waits, since all ranks must
// start the same operations in the same order.
func (d *DDP) startComplete() {
	for d.err == nil && d.started < len(d.buckets) && d.buckets[d.started].pending == 0 {
		b := d.buckets[d.started]
		b.average = b.sum.Start()
		d.started++
	}
}

// Finish waits until every gradient is the average over ranks. It returns an
// error if Ready was not called for a parameter in every pass of the step, or
// too often; after an error the DDP can only be closed.
func (d *DDP) Finish(ctx context.Context) error {
	begin := time.Now()
	defer func() { d.stats.Exposed += time.Since(begin) }()
	if missing := d.missing(); d.err == nil && missing != "" {
		d.err = fmt.Errorf("ddp: no gradient for %s: Ready was called fewer than %d times", missing, d.opts.Accumulate)
	}
	d.startComplete()
	if d.err != nil {
		return d.err
	}
	for i, b := range d.buckets {
		if _, err := b.average.Wait(ctx); err != nil {
			d.err = fmt.Errorf("ddp: bucket %d: %w", i, err)
			return d.err
		}
		b.pending = len(b.params)
		d.stats.Bytes += int64(4 * len(b.grads))
	}
	clear(d.passes)
	d.started = 0
	d.stats.Steps++
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
	if more := len(names) - 4; more > 0 {
		names = append(names[:4], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Stats returns the cost of communication so far.
func (d *DDP) Stats() Stats { return d.stats }

// Close releases the memory of the gradients; the parameters' Data is the
// caller's and stays. It is collective, and wants every step finished. After
// an error the gradients may still be on their way: then their memory stays
// until nothing refers to it.
func (d *DDP) Close(ctx context.Context) error {
	for _, p := range d.params {
		p.Grad = nil
	}
	if d.started == 0 {
		for _, b := range d.buckets {
			comm.Free(ctx, d.c, b.grads)
		}
	}
	d.buckets = nil
	return d.c.Close(ctx)
}
