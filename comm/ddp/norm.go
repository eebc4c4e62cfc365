package ddp

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gompi/comm"
)

// ClipGradNorm scales all gradients, after Finish, so that the norm of all of them together is at
// most limit, and returns what it was. It is equal on all ranks. Gradients are equal there, too, so
// nothing is sent, but with Shard: then an allreduce of one number adds up the squares of the
// shards, and all ranks have to call it. With LocalSteps each rank clips its own. An infinite limit
// only measures. A norm that is no finite number is an error, and the gradients stay as they are.
// Gradients are of float32 or float64, in host memory.
func (d *DDP) ClipGradNorm(ctx context.Context, limit float64) (float64, error) {
	if !(limit > 0) {
		return 0, fmt.Errorf("ddp: ClipGradNorm(%v): want a positive limit", limit)
	}
	if d.device != nil {
		return 0, errors.New("ddp: ClipGradNorm: want parameters in host memory")
	}
	parts, err := d.averages()
	if err != nil {
		return 0, err
	}
	norm, err := d.norm(ctx, parts)
	if err != nil {
		return 0, err
	}
	if norm > limit {
		for _, g := range parts {
			g.scale(limit / norm)
		}
	}
	return norm, nil
}

// norm returns the root of the sum of squares, shards of all ranks included.
func (d *DDP) norm(ctx context.Context, parts []gradients) (float64, error) {
	var sparse float64 // equal on all ranks
	sum := []float64{0}
	for n, g := range parts {
		if d.buckets[n].rows != nil {
			sparse += g.squares()
		} else {
			sum[0] += g.squares()
		}
	}
	if d.opts.Shard {
		if err := comm.Allreduce(ctx, d.c, sum, sum, comm.Sum); err != nil {
			d.note(fmt.Errorf("ddp: ClipGradNorm: %w", err))
			return 0, d.err
		}
	}
	squares := sum[0] + sparse
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return math.Sqrt(squares), fmt.Errorf("ddp: ClipGradNorm: the norm of the gradients is %v", squares)
	}
	return math.Sqrt(squares), nil
}

// averages returns what this rank has of them, for each bucket.
func (d *DDP) averages() ([]gradients, error) {
	var all []gradients
	for _, b := range d.buckets {
		grads := b.grads
		if b.rows != nil {
			grads = comm.Of(b.rows.result.values)
		} else if d.opts.Shard {
			grads, _ = ownPart(d.c, b.grads)
		}
		switch grads.Type() {
		case comm.TypeOf[float32]():
			all = append(all, floats[float32](comm.Slice[float32](grads)))
		case comm.TypeOf[float64]():
			all = append(all, floats[float64](comm.Slice[float64](grads)))
		default:
			return nil, fmt.Errorf("ddp: ClipGradNorm: gradients of %v: want float32 or float64", grads.Type())
		}
	}
	return all, nil
}

type gradients interface {
	squares() float64
	scale(by float64)
}

type floats[T float32 | float64] []T

// squares returns the sum of squares. Four sums at a time do not wait for each other.
func (f floats[T]) squares() float64 {
	var s [4]float64
	for len(f) >= 4 {
		a, b, c, e := float64(f[0]), float64(f[1]), float64(f[2]), float64(f[3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += e * e
		f = f[4:]
	}
	for _, v := range f {
		s[0] += float64(v) * float64(v)
	}
	return s[0] + s[1] + s[2] + s[3]
}

func (f floats[T]) scale(by float64) {
	for i := range f {
		f[i] *= T(by)
	}
}
