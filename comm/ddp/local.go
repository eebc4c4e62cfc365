package ddp

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
)

// trainsAlone reports whether this step averages no gradients, with LocalSteps.
func (d *DDP) trainsAlone() bool {
	return d.opts.LocalSteps > 0 && d.stats.Steps >= d.opts.LocalAfter
}

// AverageDue reports, after Finish, whether parameters are to be averaged after this step: after
// each LocalSteps-th step that follows the first LocalAfter. Without LocalSteps it returns false.
//
//	optimiser.Step()
//	if d.AverageDue() {
//		if err := d.AverageParams(ctx); err != nil {
//			return err
//		}
//	}
func (d *DDP) AverageDue() bool {
	alone := d.stats.Steps - d.opts.LocalAfter
	return d.opts.LocalSteps > 0 && alone > 0 && alone%d.opts.LocalSteps == 0
}

// AverageParams sets the parameters of all ranks to their average: an allreduce for each bucket. It
// is collective and overwrites the gradients. The optimisers' memory stays each rank's own. A job
// with LocalSteps calls AverageParams when AverageDue returns true, and before it evaluates, saves
// or ends between two averages.
func (d *DDP) AverageParams(ctx context.Context) error {
	if d.stream != nil {
		return errors.New("ddp: AverageParams: want parameters in host memory")
	}
	if d.err != nil {
		return d.err
	}
	for n, b := range d.buckets {
		if err := d.averageParams(ctx, b); err != nil {
			d.note(ofBucket(n, fmt.Errorf("parameters: %w", err)))
			break
		}
	}
	return d.err
}

func (d *DDP) averageParams(ctx context.Context, b *bucket) error {
	if b.rows != nil {
		table := d.params[b.params[0]].Data
		return d.c.Allreduce(ctx, table, table, comm.Avg)
	}
	if err := d.pack(b); err != nil {
		return err
	}
	if err := d.c.Allreduce(ctx, b.grads, b.grads, comm.Avg); err != nil {
		return err
	}
	return d.unpack(b)
}
