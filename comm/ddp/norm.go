package ddp

import (
	"context"
	"fmt"
	"math"

	"gompi/comm"
)

// ClipGradNorm scales all gradients, after Finish, so that the norm of all of them together is at
// most limit, and returns the norm before. The norm is equal on all ranks, as the gradients are, so
// nothing is sent without Shard. With Shard all ranks have to call ClipGradNorm: an allreduce of
// one number adds up the squares of the shards (two more, if their sum is too large or too small
// for a float64). With LocalSteps each rank clips its own gradients. An infinite limit only
// measures. A norm that is not finite is an error, and the gradients stay unchanged. Gradients are
// of float32 or float64, in host memory.
func (d *DDP) ClipGradNorm(ctx context.Context, limit float64) (float64, error) {
	if !(limit > 0) {
		return 0, fmt.Errorf("ddp: ClipGradNorm(%v): want a positive limit", limit)
	}
	if err := d.mayCall("ClipGradNorm"); err != nil {
		return 0, err
	}
	parts, err := d.averages()
	if err != nil {
		return 0, err
	}
	norm, err := d.norm(ctx, parts)
	switch {
	case err != nil:
		return 0, err
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return norm, fmt.Errorf("ddp: ClipGradNorm: the norm of the gradients is %v", norm)
	case norm > limit:
		for _, g := range parts {
			g.scale(limit / norm)
		}
	}
	return norm, nil
}

// norm returns the root of the sum of squares, over shards of all ranks.
func (d *DDP) norm(ctx context.Context, parts []gradients) (float64, error) {
	squares, err := d.squares(ctx, parts, 1)
	if err != nil {
		return 0, err
	}
	if squares >= leastSquares && squares <= math.MaxFloat64 || math.IsNaN(squares) {
		return math.Sqrt(squares), nil
	}
	largest, err := d.largest(ctx, parts)
	if err != nil || largest == 0 || math.IsInf(largest, 0) {
		return largest, err
	}
	_, exp := math.Frexp(largest)
	exp = max(exp, -1000) // times 2^1000 even the square of the least number is normal
	squares, err = d.squares(ctx, parts, math.Ldexp(1, -exp))
	return math.Ldexp(math.Sqrt(squares), exp), err
}

// leastSquares is a sum of squares so large that squares too small for a float64, or rounded to few
// bits, cannot change it noticeably, however many there are.
const leastSquares = 1e-280

// squares returns the sum of the squares of all gradients times by.
func (d *DDP) squares(ctx context.Context, parts []gradients, by float64) (float64, error) {
	var sparse float64 // equal on all ranks
	sum := []float64{0}
	for n, g := range parts {
		if d.buckets[n].rows != nil {
			sparse += g.squares(by)
		} else {
			sum[0] += g.squares(by)
		}
	}
	err := d.overShards(ctx, sum, comm.Sum)
	return sum[0] + sparse, err
}

// largest returns the largest absolute value of all gradients.
func (d *DDP) largest(ctx context.Context, parts []gradients) (float64, error) {
	most := []float64{0}
	for _, g := range parts {
		most[0] = max(most[0], g.largest())
	}
	err := d.overShards(ctx, most, comm.Max)
	return most[0], err
}

// overShards combines the ranks' results for their shards.
func (d *DDP) overShards(ctx context.Context, x []float64, op comm.Op) error {
	if !d.opts.Shard {
		return nil
	}
	if err := comm.Allreduce(ctx, d.c, x, x, op); err != nil {
		d.note(fmt.Errorf("ddp: ClipGradNorm: %w", err))
		return d.err
	}
	return nil
}

// averages returns this rank's gradients, for each bucket.
func (d *DDP) averages() ([]gradients, error) {
	var all []gradients
	for _, b := range d.buckets {
		grads := b.grads
		if b.rows != nil {
			_, values := b.rows.Result()
			grads = comm.Of(values)
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
	squares(by float64) float64
	largest() float64
	scale(by float64)
}

type floats[T float32 | float64] []T

// squares returns the sum of the squares of the numbers times by. Four independent sums avoid waits
// for each addition.
func (f floats[T]) squares(by float64) float64 {
	var s [4]float64
	for len(f) >= 4 {
		a, b, c, e := by*float64(f[0]), by*float64(f[1]), by*float64(f[2]), by*float64(f[3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += e * e
		f = f[4:]
	}
	for _, v := range f {
		a := by * float64(v)
		s[0] += a * a
	}
	return s[0] + s[1] + s[2] + s[3]
}

// largest returns the largest absolute value, NaN if one is NaN.
func (f floats[T]) largest() (most float64) {
	for _, v := range f {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

func (f floats[T]) scale(by float64) {
	for i, v := range f {
		f[i] = T(by * float64(v))
	}
}
