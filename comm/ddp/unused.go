package ddp

import (
	"context"
	"fmt"

	"gompi/comm"
)

// Skip declares that this rank adds nothing more to the gradient of parameter i in this step: no
// further pass calls Ready for it. The gradients of earlier passes of the step count.
func (d *DDP) Skip(i int) {
	if !d.mayBeReady(i) {
		return
	}
	d.passes[i] = d.opts.Accumulate
	d.endStep(i)
}

// SkipRest calls Skip for every parameter that is not ready, in the order of the buckets.
func (d *DDP) SkipRest() {
	for _, b := range d.buckets {
		for _, i := range b.params {
			if d.passes[i] < d.opts.Accumulate {
				d.Skip(i)
			}
		}
	}
}

// Used reports, with FindUnused, whether any rank had a gradient for parameter i in the last step.
// If none had, an optimiser should not change the parameter, not even by momentum. After a local
// step, with LocalSteps, only this rank's gradient counts. Without FindUnused, Used returns true,
// and also with a Hook, which may send numbers of earlier steps.
func (d *DDP) Used(i int) bool { return d.used == nil || d.opts.Hook != nil || d.used.any[i] != 0 }

// A usedParams finds the parameters with a gradient on any rank. Methods of a nil usedParams do
// nothing.
type usedParams struct {
	collective
	own, any []uint8 // 1: had a gradient
}

func newUsedParams(c *comm.Comm, n int) *usedParams {
	u := &usedParams{own: make([]uint8, n), any: make([]uint8, n)}
	u.op = c.AllreduceInit(comm.Of(u.own), comm.Of(u.any), comm.Max)
	return u
}

func (u *usedParams) mark(i int) {
	if u != nil {
		u.own[i] = 1
	}
}

func (u *usedParams) start() {
	if u != nil {
		u.collective.start()
	}
}

// keepOwn ends a step in which each rank trains alone.
func (u *usedParams) keepOwn() {
	if u != nil {
		copy(u.any, u.own)
		clear(u.own)
	}
}

func (u *usedParams) wait(ctx context.Context) error {
	if u == nil {
		return nil
	}
	if err := u.collective.wait(ctx); err != nil {
		return fmt.Errorf("ddp: used parameters: %w", err)
	}
	clear(u.own)
	return nil
}
