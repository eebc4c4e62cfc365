package ddp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp/internal/sums"
)

// A bucket is a run of memory with the gradients of some parameters, which are averaged over the
// ranks at once. One message for many small gradients saves their latency; several buckets let the
// first travel while backward computes the others.
type bucket struct {
	params  []int         // indexes, in the order of their gradients in grads
	grads   comm.Buffer   // of a device, or from comm.Alloc: ranks of one host average them in place
	rows    *sums.Rows    // not nil: the bucket is one parameter with rows, without grads
	exact   *exactReducer // nil: sums are not exact
	reducer reducer       // of grads or rows
	names   string        // of the parameters, for messages
	pending int           // parameters not yet ready in this step
}

// bytes is the size of the averages.
func (b *bucket) bytes() int {
	if b.rows != nil {
		return b.rows.Bytes()
	}
	return b.grads.Size()
}

// namesOf names the parameters of a bucket.
func (d *DDP) namesOf(members []int) string {
	first, last := d.params[members[0]].Name, d.params[members[len(members)-1]].Name
	if len(members) == 1 {
		return fmt.Sprintf("%q", first)
	}
	return fmt.Sprintf("%q to %q", first, last)
}

// layout assigns parameters, in the order in which backward reaches them, to buckets, each of one
// type of numbers. The first bucket of a type holds at most firstBytes. Each other holds at most
// bytes, or one larger parameter. A parameter with rows has a bucket of its own. Buckets are in the
// order of their completion.
func layout(order []int, params []*Tensor, firstBytes, bytes int) [][]int {
	type group struct {
		params []int
		last   int // position in order
		room   int
	}
	var all []*group
	open := map[comm.Type]*group{} // the last group of each type
	for at, i := range order {
		t, size := params[i].Data.Type(), params[i].Data.Size()
		g := open[t]
		switch {
		case params[i].Row > 0:
			g = &group{}
			all = append(all, g)
		case g == nil:
			g = &group{room: firstBytes}
			all, open[t] = append(all, g), g
		case size > g.room:
			g = &group{room: bytes}
			all, open[t] = append(all, g), g
		}
		g.params, g.last = append(g.params, i), at
		g.room -= size
	}
	slices.SortFunc(all, func(a, b *group) int { return cmp.Compare(a.last, b.last) })
	var buckets [][]int
	for _, g := range all {
		buckets = append(buckets, g.params)
	}
	return buckets
}

// makeBuckets makes the buckets for the present order of the parameters and the limits.
func (d *DDP) makeBuckets(ctx context.Context) error {
	d.buckets = nil
	for _, members := range layout(d.order, d.params, d.opts.FirstBucketBytes, d.opts.BucketBytes) {
		b := &bucket{params: members, names: d.namesOf(members), pending: len(members)}
		d.buckets = append(d.buckets, b)
		for _, i := range members {
			d.home[i] = b
		}
		if b.rows = d.rows[members[0]]; b.rows != nil {
			b.reducer = d.runner.newTask(func(ctx context.Context) error { return b.rows.Reduce(ctx, d.hookComm) })
		} else if err := d.fillBucket(ctx, b); err != nil {
			return err
		}
		b.reducer = d.follow(b.reducer, len(d.buckets)-1)
	}
	d.trace.Resize(len(d.buckets))
	return nil
}

// fillBucket gives the gradients of b memory and a reducer.
func (d *DDP) fillBucket(ctx context.Context, b *bucket) error {
	n := 0
	for _, i := range b.params {
		d.offset[i] = n
		n += d.params[i].Data.Len()
	}
	var err error
	if b.grads, err = d.alloc(ctx, d.params[b.params[0]].Data.Type(), n); err != nil {
		return err
	}
	for _, i := range b.params {
		d.setGrad(i, b.grads.Slice(d.offset[i], d.offset[i]+d.params[i].Data.Len()))
	}
	b.reducer, err = d.newReducer(ctx, b)
	return err
}

func (d *DDP) setGrad(i int, grad comm.Buffer) {
	d.params[i].Grad = grad
	if d.slices != nil {
		d.slices[i].Grad = comm.Slice[float32](grad)
	}
}

// alloc allocates the gradients of a bucket; freeBuckets frees them.
func (d *DDP) alloc(ctx context.Context, t comm.Type, n int) (comm.Buffer, error) {
	if d.stream != nil {
		return d.stream.Space().Alloc(t, n)
	}
	return d.c.Alloc(ctx, t, n)
}

// freeBuckets ignores errors: they mean that the communicator is broken, and its Close frees the
// memory.
func (d *DDP) freeBuckets(ctx context.Context, buckets []*bucket) {
	for _, b := range buckets {
		switch {
		case b.rows != nil || b.grads == (comm.Buffer{}): // nothing was allocated
		case d.stream != nil:
			d.stream.Space().Free(b.grads)
		default:
			_ = d.c.Free(ctx, b.grads)
		}
		if b.reducer != nil {
			b.reducer.free(ctx)
		}
	}
}

// rebuild makes the buckets anew after a step, for another order of parameters or other limits, if
// that changes them. Gradients keep their values.
func (d *DDP) rebuild(ctx context.Context) error {
	want := layout(d.order, d.params, d.opts.FirstBucketBytes, d.opts.BucketBytes)
	if slices.EqualFunc(want, d.buckets, func(w []int, b *bucket) bool { return sameSet(w, b.params) }) {
		return nil
	}
	old := d.buckets
	grads := make([]comm.Buffer, len(d.params))
	for i, p := range d.params {
		grads[i] = p.Grad
	}
	if err := d.makeBuckets(ctx); err != nil {
		return err
	}
	for i, p := range d.params {
		if d.rows[i] == nil {
			if err := copyAll(p.Grad, grads[i]); err != nil {
				return err
			}
		}
	}
	d.freeBuckets(ctx, old)
	return nil
}

func sameSet(a, b []int) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
