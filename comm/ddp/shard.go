package ddp

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp/sampler"
)

// A ShardPart is a part of a parameter whose average is on this rank, with Options.Shard.
type ShardPart struct {
	Param      int // its index
	Begin, End int // range of its numbers
	Data, Grad comm.Buffer
}

// Shards returns the parts of the parameters that this rank's optimiser steps: with Options.Shard
// about 1/Size() of all numbers, wherever parameters begin; without, all. They are in the order of
// the parameters, and stay the same until Close. Parameters with rows are not among them: Rows
// gives every rank all of their rows.
//
//	shards := d.Shards() // and the optimiser remembers its momentum for these alone
//	...
//	if err := d.Finish(ctx); err != nil {
//		return err
//	}
//	for k, s := range shards {
//		step(comm.Slice[float32](s.Data), comm.Slice[float32](s.Grad), momentum[k])
//	}
//	if err := d.GatherParams(ctx); err != nil {
//		return err
//	}
//
// Without Options.Shard the gradients of Shards move whenever Grad does, as New documents.
func (d *DDP) Shards() []ShardPart {
	var parts []ShardPart
	for _, b := range d.buckets {
		if b.rows != nil {
			continue
		}
		lo, hi := 0, b.grads.Len()
		if d.opts.Shard {
			lo, hi = sampler.Shard(b.grads.Len(), d.c.Rank(), d.c.Size())
		}
		for _, i := range b.params {
			p, at := d.params[i], d.offset[i]
			begin, end := max(lo-at, 0), min(hi-at, p.Data.Len())
			if begin < end {
				parts = append(parts, ShardPart{i, begin, end, p.Data.Slice(begin, end), p.Grad.Slice(begin, end)})
			}
		}
	}
	slices.SortFunc(parts, func(a, b ShardPart) int { return a.Param - b.Param }) // buckets may change
	return parts
}

// GatherParams copies each rank's Shards of the parameters to all others: an allgather for each
// bucket. Call it after the optimiser's step. It is collective, and overwrites the gradients.
// Without Options.Shard it does nothing.
func (d *DDP) GatherParams(ctx context.Context) error {
	if !d.opts.Shard {
		return d.err
	}
	data := make([]comm.Buffer, len(d.params))
	for i, p := range d.params {
		data[i] = p.Data
	}
	var own []comm.Buffer
	for _, s := range d.Shards() {
		own = append(own, s.Data)
	}
	return d.GatherShards(ctx, own, data)
}

// GatherShards collects the optimisers' memory of their Shards, for a snapshot: own[k] belongs to
// Shards()[k] and is copied to its place in all[i], which is as long as parameter i, on every rank.
// For a parameter with rows, all[i] stays unchanged. GatherShards is collective and overwrites the
// gradients. The reverse needs no communication: own[k] is all[s.Param].Slice(s.Begin, s.End).
func (d *DDP) GatherShards(ctx context.Context, own, all []comm.Buffer) error {
	if err := d.mayCall("GatherShards"); err != nil {
		return err
	}
	shards := d.Shards()
	if len(own) != len(shards) || len(all) != len(d.params) {
		return fmt.Errorf("ddp: GatherShards of %d and %d buffers: want one for each of the %d shards and %d parameters",
			len(own), len(all), len(shards), len(d.params))
	}
	for k, s := range shards {
		if err := d.fitsShard(s, own[k], all[s.Param]); err != nil {
			return err
		}
	}
	for k, s := range shards {
		to := all[s.Param].Slice(s.Begin, s.End)
		if d.opts.Shard {
			to = s.Grad // its memory carries the numbers to the other ranks
		}
		if err := copyAll(to, own[k]); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
	}
	if d.opts.Shard {
		d.note(d.gatherBuckets(ctx, all))
	}
	return d.err
}

func (d *DDP) fitsShard(s ShardPart, own, all comm.Buffer) error {
	p := d.params[s.Param]
	if own.Len() != s.End-s.Begin || all.Len() != p.Data.Len() || own.Type() != p.Data.Type() ||
		all.Type() != p.Data.Type() {
		return fmt.Errorf("ddp: GatherShards: %d %v of %d %v for numbers %d to %d of %q: want as many of %d %v",
			own.Len(), own.Type(), all.Len(), all.Type(), s.Begin, s.End-1, p.Name, p.Data.Len(), p.Data.Type())
	}
	return nil
}

// gatherBuckets completes the memory of each bucket, in which the ranks have set their parts, and
// copies it to all.
func (d *DDP) gatherBuckets(ctx context.Context, all []comm.Buffer) error {
	for n, b := range d.buckets {
		if b.rows != nil {
			continue
		}
		own, counts := ownPart(d.c, b.grads)
		if err := d.c.Allgatherv(ctx, own, b.grads, counts, nil); err != nil {
			return ofBucket(n, err)
		}
		for _, i := range b.params {
			if err := copyAll(all[i], d.params[i].Grad); err != nil {
				return ofBucket(n, err)
			}
		}
	}
	return nil
}

// ownPart returns this rank's part of the memory of a bucket, and the lengths of all ranks' parts.
func ownPart(c *comm.Comm, grads comm.Buffer) (own comm.Buffer, counts []int) {
	for rank := range c.Size() {
		lo, hi := sampler.Shard(grads.Len(), rank, c.Size())
		counts = append(counts, hi-lo)
		if rank == c.Rank() {
			own = grads.Slice(lo, hi)
		}
	}
	return own, counts
}
