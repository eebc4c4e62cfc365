package ddp

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
)

// BucketOrder returns the indexes of the parameters in the order of their gradients in the buckets,
// for Options.BucketOrder of a job that continues from a snapshot. It is nil until the first step
// has shown the order, and after Close. It is the same on all ranks.
func (d *DDP) BucketOrder() []int {
	if !d.ordered || len(d.buckets) == 0 {
		return nil
	}
	order := make([]int, 0, len(d.params))
	for _, b := range d.buckets {
		order = append(order, b.params...)
	}
	return order
}

// lastToFirst is the assumed order in which backward reaches n parameters.
func lastToFirst(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	return order
}

// checkOrder returns an error unless BucketOrder has each of n parameters once, or is another
// model's.
func (o Options) checkOrder(n int) error {
	if !o.knowsOrder(n) {
		return nil
	}
	seen := make([]bool, n)
	for at, i := range o.BucketOrder {
		if i < 0 || i >= n || seen[i] {
			return fmt.Errorf("ddp: BucketOrder has parameter %d at place %d: want each of 0 to %d once", i, at, n-1)
		}
		seen[i] = true
	}
	return nil
}

// knowsOrder reports whether BucketOrder is an order of n parameters.
func (o Options) knowsOrder(n int) bool { return o.BucketOrder != nil && len(o.BucketOrder) == n }

// setOrder sets the order for the first buckets.
func (d *DDP) setOrder() {
	n := len(d.params)
	if d.ordered = d.opts.knowsOrder(n); d.ordered {
		d.order = slices.Clone(d.opts.BucketOrder)
	} else {
		d.order = lastToFirst(n)
	}
}

// afterFirst makes buckets after the first step, which reached parameters in this order. Rank 0's
// order counts, unless an order was known before.
func (d *DDP) afterFirst(ctx context.Context, order []int) error {
	if !d.ordered {
		if err := comm.Bcast(ctx, d.c, 0, order); err != nil {
			return err
		}
		d.order, d.ordered = slices.Clone(order), true
	}
	if d.opts.TuneBuckets {
		if err := d.startTuning(ctx); err != nil || d.tuning != nil {
			return err
		}
	}
	return d.rebuild(ctx)
}
