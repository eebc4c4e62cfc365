package ddp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gompi/comm"
)

// bucketSizes are the sizes that TuneBuckets tries. Sizes in between change the time of a step
// little.
var bucketSizes = []int{256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 25 << 20, 100 << 20}

// For each size the first steps, which touch new memory, are not measured. The fastest of the
// others counts: other load on the machine only adds to a step's time.
const (
	tuningWarmUp   = 1
	tuningMeasured = 4
)

// A tuning finds the bucket size with which steps are fastest, on the slowest rank. It begins after
// the step that shows the order of the parameters.
type tuning struct {
	sizes []int     // sizes with different buckets
	best  []float64 // seconds of the fastest step with each, on this rank
	at    int       // index of the present size
	steps int       // steps done with the present size
	last  time.Time // end of the last step
}

// newTuning returns the tuning for these parameters, nil if all sizes give the same buckets.
func newTuning(order []int, params []*Tensor) *tuning {
	t := &tuning{}
	var before [][]int
	for _, size := range bucketSizes {
		now := layout(order, params, firstBytes(size), size)
		if !slices.EqualFunc(now, before, slices.Equal) {
			t.sizes = append(t.sizes, size)
		}
		before = now
	}
	if len(t.sizes) < 2 {
		return nil
	}
	for range t.sizes {
		t.best = append(t.best, math.Inf(1))
	}
	return t
}

// firstBytes is the limit of the first bucket for the size of the others.
func firstBytes(size int) int { return min(size, 1<<20) }

// startTuning begins with the smallest size.
func (d *DDP) startTuning(ctx context.Context) error {
	if d.tuning = newTuning(d.order, d.params); d.tuning == nil {
		return nil
	}
	return d.setBucketBytes(ctx, d.tuning.sizes[0])
}

// tune records the time of a step, and continues with the next size or, after the last, chooses the
// best. All ranks do so after the same steps, and choose by the same times: the slowest rank's.
func (d *DDP) tune(ctx context.Context) error {
	t := d.tuning
	if t == nil || !t.note(time.Now()) {
		return nil
	}
	if t.at < len(t.sizes) {
		return d.setBucketBytes(ctx, t.sizes[t.at])
	}
	d.tuning = nil
	if err := comm.Allreduce(ctx, d.c, t.best, t.best, comm.Max); err != nil {
		return err
	}
	return d.setBucketBytes(ctx, t.sizes[slices.Index(t.best, slices.Min(t.best))])
}

// note records the end of a step, and reports whether the step was the last with this size.
func (t *tuning) note(now time.Time) (over bool) {
	if t.steps >= tuningWarmUp {
		t.best[t.at] = min(t.best[t.at], now.Sub(t.last).Seconds())
	}
	t.last = now
	if t.steps++; t.steps < tuningWarmUp+tuningMeasured {
		return false
	}
	t.at, t.steps = t.at+1, 0
	return true
}

func (d *DDP) setBucketBytes(ctx context.Context, size int) error {
	d.opts.FirstBucketBytes, d.opts.BucketBytes = firstBytes(size), size
	if err := d.rebuild(ctx); err != nil {
		return fmt.Errorf("of %d bytes: %w", size, err)
	}
	return nil
}
