package ddp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gompi/comm"
)

// A bucket is a run of memory that holds the gradients of some parameters and
// is averaged over the ranks at once. Sending many small gradients as
// one message saves their latency; sending the model in several lets the first
// travel while the others are still computed.
type bucket struct {
	params  []int         // indexes, in the order in which their gradients lie in grads
	grads   comm.Buffer   // of a device, or from comm.Alloc: ranks of one host average them in place
	rows    *rowReducer   // not nil: it is one parameter of rows, which has no grads
	exact   *exactReducer // nil: sums are not exact
	reducer reducer       // of grads or rows
	names   string        // of the parameters, for messages
	pending int           // parameters not yet ready in this step
}

// bytes is the size of the averages.
func (b *bucket) bytes() int {
	if b.rows != nil {
		return b.rows.result.bytes()
	}
	return b.grads.Size()
}

// namesOf returns which parameters these are.
func (d *DDP) namesOf(members []int) string {
	first, last := d.params[members[0]].Name, d.params[members[len(members)-1]].Name
	if len(members) == 1 {
		return fmt.Sprintf("%q", first)
	}
	return fmt.Sprintf("%q to %q", first, last)
}

// layout assigns parameters, in the order in which backward reaches them, to buckets, each of one
// type of numbers. The first bucket of a type holds at most firstBytes, another at most bytes, or
// one parameter that is larger. One with rows has a bucket of its own. Buckets are in the order in
// which they are complete.
func layout(order []int, params []*Tensor, firstBytes, bytes int) [][]int {
	type group struct {
		params []int
		last   int // place in order
		room   int
	}
	var all []*group
	open := map[comm.Type]*group{} // the last of each type
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

// makeBuckets makes the buckets that the order of the parameters and the limits ask for.
func (d *DDP) makeBuckets(ctx context.Context) error {
	d.buckets = nil
	for _, members := range layout(d.order, d.params, d.opts.FirstBucketBytes, d.opts.BucketBytes) {
		b := &bucket{params: members, names: d.namesOf(members), pending: len(members)}
		d.buckets = append(d.buckets, b)
		for _, i := range members {
			d.home[i] = b
		}
		if b.rows = d.rows[members[0]]; b.rows != nil {
			b.reducer = b.rows
		} else if err := d.fillBucket(ctx, b); err != nil {
			return err
		}
		b.reducer = d.trace.follow(b.reducer, len(d.buckets)-1)
	}
	d.trace.resize(len(d.buckets))
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

// alloc returns memory for the gradients of a bucket, freeBuckets gives it back.
func (d *DDP) alloc(ctx context.Context, t comm.Type, n int) (comm.Buffer, error) {
	if d.stream != nil {
		return d.stream.Space().Alloc(t, n)
	}
	return d.c.Alloc(ctx, t, n)
}

// freeBuckets ignores errors: they mean that the communicator is broken, and its Close gives the
// memory back.
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

// rebuild makes the buckets anew after a step, for another order of parameters or other limits,
// unless that gives the same ones. Gradients keep their values.
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
