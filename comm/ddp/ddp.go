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
	device  *device   // that computes gradients; nil: in host memory
	params  []*Tensor // in host memory: of the same memory as slices
	slices  []*Param
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
	// Exposed is the time in Ready and Finish: communication, and waiting for slower ranks, that
	// did not overlap computation. On a device it is how long the stream waited for averages, to
	// some 10 microseconds; the last step counts after Wait.
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
	tensors := make([]*Tensor, len(params))
	for i, p := range params {
		tensors[i] = &Tensor{Name: p.Name, Data: comm.Of(p.Data)}
	}
	d, err := start(ctx, c, nil, tensors, opts)
	if err != nil {
		return nil, err
	}
	d.slices = params
	for i, p := range params {
		p.Grad = comm.Slice[float32](tensors[i].Grad)
	}
	return d, nil
}

// NewOn is New for a model in device memory whose gradients are computed on q. Ready means that
// this work is enqueued on q, not that it is done, and returns at once. A bucket is averaged when q
// has computed its gradients, while q computes those of the next bucket. So all buckets but the
// last overlap, even if the whole backward pass was enqueued before its first kernel ran. Finish
// returns at once, too: work enqueued later on q reads the averages. Wait waits for them.
//
// So q stops: from the first Ready of a step until Wait returns, the restrictions of comm's
// stream-ordered collectives apply. A program calls Wait after Finish if one step overfills the
// queue of q, or if it needs a call that is restricted. In the first step, when kernels are
// launched for the first time, no stream stops and Finish waits. It waits in every step if the
// driver cannot stop a stream, which is tested once (CUDA 11.7 or newer, but not everywhere).
func NewOn(ctx context.Context, c *comm.Comm, q Stream, params []*Tensor, opts Options) (*DDP, error) {
	for _, p := range params {
		if p.Data.Len() > 0 && p.Data.Space() != q.Space() {
			return nil, fmt.Errorf("ddp: parameter %q is in %s: want memory of %s, whose stream computes", p.Name, p.Data.Space().Name(), q.Space().Name())
		}
	}
	if err := q.Sync(); err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	return start(ctx, c, q, params, opts)
}

func start(ctx context.Context, c *comm.Comm, q Stream, params []*Tensor, opts Options) (*DDP, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := sameModel(ctx, c, params, opts); err != nil {
		return nil, err
	}
	if err := oneType(params); err != nil {
		return nil, err
	}
	own, err := c.Dup(ctx)
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	d := &DDP{c: own, opts: opts, params: params,
		home: make([]*bucket, len(params)), passes: make([]int, len(params))}
	if q != nil {
		d.device, err = newDevice(q)
	}
	if err == nil {
		err = d.makeBuckets(ctx)
	}
	if err == nil {
		err = d.spreadData(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ddp: %w", err), d.Close(ctx))
	}
	return d, nil
}

// oneType returns an error unless all parameters have one Type, of which there are
// averages.
func oneType(params []*Tensor) error {
	for _, p := range params {
		t := p.Data.Type()
		if first := params[0].Data.Type(); t != first || !comm.Avg.Defined(t) {
			return fmt.Errorf("ddp: parameter %q has numbers of %v, the first %v: want one type that has averages", p.Name, t, first)
		}
	}
	return nil
}

func (d *DDP) makeBuckets(ctx context.Context) error {
	sizes := make([]int, len(d.params))
	for i, p := range d.params {
		sizes[i] = p.Data.Size()
	}
	for _, members := range layout(sizes, d.opts.FirstBucketBytes, d.opts.BucketBytes) {
		n := 0
		for _, i := range members {
			n += d.params[i].Data.Len()
		}
		b := &bucket{params: members, pending: len(members)}
		var err error
		if b.grads, err = d.alloc(ctx, n); err != nil {
			return err
		}
		d.buckets = append(d.buckets, b)
		b.sum = d.c.AllreduceInit(b.grads, b.grads, comm.Avg)
		rest := b.grads
		for _, i := range members {
			p, n := d.params[i], d.params[i].Data.Len()
			d.home[i] = b
			p.Grad, rest = rest.Slice(0, n), rest.Slice(n, rest.Len())
		}
	}
	return nil
}

// alloc returns memory for the gradients of a bucket, free gives it back.
func (d *DDP) alloc(ctx context.Context, n int) (comm.Buffer, error) {
	if d.device != nil {
		return d.device.stream.Space().Alloc(d.params[0].Data.Type(), n)
	}
	grads, err := comm.Alloc[float32](ctx, d.c, n)
	return comm.Of(grads), err
}

func (d *DDP) free(ctx context.Context, grads comm.Buffer) {
	if d.device != nil {
		d.device.stream.Space().Free(grads)
		return
	}
	comm.Free(ctx, d.c, comm.Slice[float32](grads))
}

// spreadData copies rank 0's parameters to the others. The buckets, not yet in
// use, carry them, so that a model of many small parameters needs few messages.
func (d *DDP) spreadData(ctx context.Context) error {
	for _, b := range d.buckets {
		for _, i := range b.params {
			if err := copyAll(d.params[i].Grad, d.params[i].Data); err != nil {
				return err
			}
		}
		if err := d.c.Bcast(ctx, 0, b.grads); err != nil {
			return err
		}
		for _, i := range b.params {
			if err := copyAll(d.params[i].Data, d.params[i].Grad); err != nil {
				return err
			}
		}
	}
	d.ZeroGrad()
	return d.err
}

// copyAll copies src to dst, of the same size, in or between host memory and that of
// a device.
func copyAll(dst, src comm.Buffer) error {
	space := dst.Space()
	if dst.IsHost() {
		space = src.Space()
	}
	return space.Copy(dst, src)
}

// ZeroGrad sets all gradients to zero. It belongs between one Finish and the
// backward pass of the next step. On a device it puts that on the stream, and Finish
// says if something is wrong.
func (d *DDP) ZeroGrad() {
	for _, b := range d.buckets {
		if d.device == nil {
			clear(comm.Slice[float32](b.grads))
		} else if err := d.device.stream.Clear(b.grads); err != nil && d.err == nil {
			d.err = fmt.Errorf("ddp: %w", err)
		}
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
	if !d.opts.NoOverlap && !d.mayNotStop() {
		defer d.expose(time.Now())
		d.startComplete()
	}
}

// expose counts the time since begin as exposed, but for a device: that has other
// things to do.
func (d *DDP) expose(begin time.Time) {
	if d.device == nil {
		d.stats.Exposed += time.Since(begin)
	}
}

// startComplete begins the allreduces of complete buckets, always in the order
// of the buckets: a bucket that is complete early waits, since all ranks must
// start the same operations in the same order.
func (d *DDP) startComplete() {
	for d.err == nil && d.started < len(d.buckets) && d.buckets[d.started].pending == 0 {
		b := d.buckets[d.started]
		if d.device == nil {
			b.average = b.sum.Start()
		} else if err := d.device.average(d.c, b); err != nil {
			d.note(ofBucket(d.started, err))
			return
		}
		d.started++
	}
}

// note keeps the first error.
func (d *DDP) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// ofBucket says to which bucket err happened, if it is one.
func ofBucket(i int, err error) error {
	if err != nil {
		err = fmt.Errorf("ddp: bucket %d: %w", i, err)
	}
	return err
}

// Finish waits until every gradient is the average over ranks. On a device it makes the stream wait
// instead, and itself waits only for the averages of the step before: the host is at most one step
// ahead. In the first step, or if streams cannot be stopped, it waits as in host memory. It returns
// an error if Ready was called too rarely or too often for a parameter, or if averaging failed: on
// a device, at the latest in the next Finish. After an error the DDP can only be closed.
func (d *DDP) Finish(ctx context.Context) error {
	defer d.expose(time.Now())
	if err := d.Wait(ctx); err != nil {
		d.note(err)
		return d.err
	}
	if missing := d.missing(); missing != "" {
		d.err = fmt.Errorf("ddp: no gradient for %s: Ready was called fewer than %d times", missing, d.opts.Accumulate)
		return d.err
	}
	if d.mayNotStop() {
		d.averageAll(ctx)
	} else {
		d.startComplete()
		d.settle(ctx)
	}
	if d.err != nil {
		return d.err
	}
	for _, b := range d.buckets {
		b.pending = len(b.params)
		d.stats.Bytes += int64(b.grads.Size())
	}
	clear(d.passes)
	d.started = 0
	d.stats.Steps++
	return nil
}

// settle waits for the averages, or makes the device wait.
func (d *DDP) settle(ctx context.Context) {
	if d.device != nil && d.err == nil {
		d.note(d.device.finish())
		return
	}
	for i := 0; i < len(d.buckets) && d.err == nil; i++ {
		_, err := d.buckets[i].average.Wait(ctx)
		d.note(ofBucket(i, err))
	}
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
// caller's and stays. It is collective, and wants every step finished; on a device it
// waits for the averages, and tells what has gone wrong since the last Finish. After
// an error the gradients may still be on their way: then their memory stays
// until the other ranks have closed, too.
func (d *DDP) Close(ctx context.Context) error {
	for _, p := range d.slices {
		p.Grad = nil
	}
	for _, p := range d.params {
		p.Grad = comm.Buffer{}
	}
	var failed []error
	if d.err == nil {
		failed = append(failed, d.Wait(ctx))
	}
	if d.started == 0 && (d.device == nil || d.device.step == nil) {
		for _, b := range d.buckets {
			d.free(ctx, b.grads)
		}
	}
	d.buckets = nil
	failed = append(failed, d.c.Close(ctx))
	if d.device != nil {
		failed = append(failed, d.device.close())
		d.device = nil
	}
	return errors.Join(failed...)
}
