package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/comm"
	"gompi/comm/ddp/internal/sums"
	"gompi/comm/ddp/internal/trace"
)

// A DDP keeps the parameters of one model equal on all ranks by averaging their gradients. Its
// methods are called from one goroutine at a time.
type DDP struct {
	c        *comm.Comm
	opts     Options
	stream   Stream    // on which gradients are computed; nil: in host memory
	params   []*Tensor // in host memory: the memory of slices
	slices   []*Param  // nil: New was given Tensors
	ordered  bool      // the order is known: from Options, or from the first step
	order    []int     // of the parameters, as backward reaches them
	buckets  []*bucket
	home     []*bucket    // of each parameter
	offset   []int        // of each parameter's gradient in its bucket
	rows     []*sums.Rows // of each parameter that has rows, else nil
	runner   *runner      // of hooks, sparse gradients and device buckets; nil without
	hookComm *comm.Comm   // for hooks and sparse gradients, whose blocking calls run beside the DDP's

	passes   []int // calls of Ready in this step, for each parameter
	complete []int // parameters in the order in which their last pass ended
	closed   bool
	started  int         // buckets whose averages have begun in this step
	used     *usedParams // nil without FindUnused
	joined   *joinCounter
	trace    *trace.Recorder // nil without Trace
	waiter   *runner         // waits for buckets to record their ends
	tuning   *tuning         // nil: over, or without TuneBuckets
	packed   []byte          // Buffers for a broadcast
	err      error           // why this DDP can no longer be used
	stats    Stats
}

// Stats are the costs of communication since New.
type Stats struct {
	Steps int
	// Exposed is the time in Ready and Finish: communication, and waits for slower ranks, that did
	// not overlap computation. On a device it is the time that Finish waited for averages after the
	// stream's work.
	Exposed time.Duration
	// Bytes is the size of all averaged gradients. Hooks may have sent less. Of sparse gradients
	// only the rows that Rows returns count.
	Bytes int64
	// Buckets is the number of buckets, BucketBytes the largest size of a bucket.
	Buckets, BucketBytes int
}

// New prepares the training of a model with these parameters. It compares their names and lengths
// over all ranks of c, copies rank 0's Data to the others and sets every Grad to zeroed memory. New
// is collective and keeps a duplicate of c, so that the caller may use c while gradients travel.
//
// If backward does not reach parameters from the last to the first, the Finish of the first step
// makes new buckets, in the order of rank 0. Then every Grad has new memory with the same numbers.
// TuneBuckets does so, too. So a program reads Grad anew in each step. With Options.BucketOrder of
// this model, and without TuneBuckets, the first step changes no buckets.
func New(ctx context.Context, c *comm.Comm, params []*Param, opts Options) (*DDP, error) {
	return start(ctx, c, nil, tensors(params), params, opts)
}

// NewTensors is New for parameters in host memory of any types that have averages. Parameters of
// the same type share buckets.
func NewTensors(ctx context.Context, c *comm.Comm, params []*Tensor, opts Options) (*DDP, error) {
	for _, p := range params {
		if !p.Data.IsHost() {
			return nil, fmt.Errorf("ddp: parameter %q is in %s: want host memory, or NewOn", p.Name,
				p.Data.Space().Name())
		}
	}
	return start(ctx, c, nil, params, nil, opts)
}

// NewOn is New for a model in device memory whose gradients are computed on q. Ready means that
// this work is enqueued on q, not that it is done, and returns at once. A bucket is averaged when q
// has computed its gradients, while q computes the next bucket's. So all buckets but the last
// overlap, even if the whole backward pass was enqueued before its first kernel ran. Finish waits
// for q and for the averages.
func NewOn(ctx context.Context, c *comm.Comm, q Stream, params []*Tensor, opts Options) (*DDP, error) {
	for _, p := range params {
		if p.Data.Len() > 0 && p.Data.Space() != q.Space() {
			return nil, fmt.Errorf("ddp: parameter %q is in %s: want memory of %s, the device whose stream computes",
				p.Name, p.Data.Space().Name(), q.Space().Name())
		}
	}
	if names := opts.names(hostOnly); len(names) > 0 {
		return nil, fmt.Errorf("ddp: %s is set: want it only where parameters are in host memory", names[0])
	}
	if err := q.Sync(); err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	return start(ctx, c, q, params, nil, opts)
}

func start(ctx context.Context, c *comm.Comm, q Stream, params []*Tensor, slices []*Param, opts Options) (*DDP, error) {
	opts = opts.withDefaults()
	if err := sameModel(ctx, c, params, opts); err != nil {
		return nil, err
	}
	// Later errors occur on all ranks.
	if err := opts.check(); err != nil {
		return nil, err
	}
	if err := opts.fit(params); err != nil {
		return nil, err
	}
	own, err := c.Dup(ctx)
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	n := len(params)
	d := &DDP{c: own, opts: opts, params: params, slices: slices,
		stream: q, home: make([]*bucket, n), offset: make([]int, n), rows: make([]*sums.Rows, n),
		passes: make([]int, n)}
	d.setOrder()
	if err := d.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ddp: %w", err), d.Close(ctx))
	}
	return d, nil
}

// prepare creates the parts for the options.
func (d *DDP) prepare(ctx context.Context) (err error) {
	if d.opts.Hook != nil || slices.ContainsFunc(d.params, func(p *Tensor) bool { return p.Row > 0 }) {
		if d.hookComm, err = d.c.Dup(ctx); err != nil {
			return err
		}
	}
	if d.hookComm != nil || d.stream != nil {
		d.runner = newRunner(len(d.params))
	}
	if d.opts.FindUnused {
		d.used = newUsedParams(d.c, len(d.params))
	}
	d.joined = newJoinCounter(d.c)
	if d.opts.Trace {
		d.trace, d.waiter = trace.NewRecorder(), newRunner(len(d.params))
	}
	for i, p := range d.params {
		if p.Row > 0 {
			d.rows[i] = sums.NewRows(p.Name, p.Data.Len(), p.Row, d.opts.Quantum)
		}
	}
	if err := d.makeBuckets(ctx); err != nil {
		return err
	}
	err = d.throughBuckets(func(params comm.Buffer) error { return d.c.Bcast(ctx, 0, params) })
	if err != nil {
		return err
	}
	d.clearGrads()
	return cmp.Or(d.bcastBuffers(ctx), d.err)
}

// throughBuckets calls op with the parameters of each bucket and copies the results back. The
// gradients' memory carries them, so that a model of many small parameters needs few messages.
func (d *DDP) throughBuckets(op func(params comm.Buffer) error) error {
	for n, b := range d.buckets {
		if err := d.through(b, op); err != nil {
			return fmt.Errorf("bucket %d: parameters: %w", n, err)
		}
	}
	return nil
}

func (d *DDP) through(b *bucket, op func(params comm.Buffer) error) error {
	if b.rows != nil { // the table has no gradients
		return op(d.params[b.params[0]].Data)
	}
	for _, i := range b.params {
		if err := copyAll(d.params[i].Grad, d.params[i].Data); err != nil {
			return err
		}
	}
	if err := op(b.grads); err != nil {
		return err
	}
	for _, i := range b.params {
		if err := copyAll(d.params[i].Data, d.params[i].Grad); err != nil {
			return err
		}
	}
	return nil
}

// copyAll copies src to dst, of the same size, within or between host and device memory.
func copyAll(dst, src comm.Buffer) error {
	space := dst.Space()
	if dst.IsHost() {
		space = src.Space()
	}
	return space.Copy(dst, src)
}

// note keeps the first error.
func (d *DDP) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// ofBucket adds the bucket's number to err, unless err is nil.
func ofBucket(i int, err error) error {
	if err != nil {
		err = fmt.Errorf("ddp: bucket %d: %w", i, err)
	}
	return err
}

// Stats returns the cost of communication so far.
func (d *DDP) Stats() Stats {
	s := d.stats
	s.BucketBytes, s.Buckets = d.opts.BucketBytes, len(d.buckets)
	return s
}

// Close frees the gradients; the parameters' Data stays the caller's. It is collective, and
// requires that every step is finished. After an error the gradients may still be under way: then
// host memory stays until the other ranks have closed, too. A second Close does nothing.
func (d *DDP) Close(ctx context.Context) error {
	if d.closed {
		return nil
	}
	d.closed = true
	for _, p := range d.slices {
		p.Grad = nil
	}
	for _, p := range d.params {
		p.Grad = comm.Buffer{}
	}
	var failed []error
	d.waiter.close()
	d.runner.close()
	if d.hookComm != nil {
		failed = append(failed, d.hookComm.Close(ctx))
	}
	if d.mayFree() {
		d.freeBuckets(ctx, d.buckets)
	}
	d.buckets = nil
	return errors.Join(append(failed, d.c.Close(ctx))...)
}

// mayFree reports whether Close may free the gradients. To free host memory is collective, and
// after an error another rank may be in another collective: then the communicator's Close frees the
// memory. To free device memory waits for the device.
func (d *DDP) mayFree() bool { return d.stream != nil || d.started == 0 && d.err == nil }
