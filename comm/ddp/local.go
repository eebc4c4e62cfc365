package ddp

import (
	"context"
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
	if err := d.mayCall("AverageParams"); err != nil {
		return err
	}
	err := d.throughBuckets(func(params comm.Buffer) error { return d.c.Allreduce(ctx, params, params, comm.Avg) })
	if err != nil {
		d.note(fmt.Errorf("ddp: %w", err))
	}
	return d.err
}
