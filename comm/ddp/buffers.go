package ddp

import (
	"context"
	"fmt"

	"gompi/comm"
)

// SyncBuffers copies the Options' Buffers of rank 0 to all ranks, as torch's
// DistributedDataParallel does before each forward pass. They travel as one broadcast. SyncBuffers
// is collective. New has done so once.
func (d *DDP) SyncBuffers(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	if err := d.bcastBuffers(ctx); err != nil {
		d.note(fmt.Errorf("ddp: %w", err))
	}
	return d.err
}

func (d *DDP) bcastBuffers(ctx context.Context) error {
	d.packed = d.packed[:0]
	for _, b := range d.opts.Buffers {
		d.packed = append(d.packed, b.Data.HostSlice()...)
	}
	if len(d.packed) == 0 {
		return nil
	}
	if err := comm.Bcast(ctx, d.c, 0, d.packed); err != nil {
		return fmt.Errorf("buffers: %w", err)
	}
	from := d.packed
	for _, b := range d.opts.Buffers {
		from = from[copy(b.Data.HostSlice(), from):]
	}
	return nil
}
