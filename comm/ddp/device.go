package ddp

import (
	"context"
	"fmt"

	"gompi/comm"
)

// A Stream is the work of a device, such as a *cudaops.Stream. Calls enqueue work and return; the
// device does the work in order. Gradients are computed on a Stream. One goroutine at a time uses a
// Stream.
type Stream interface {
	comm.Stream
	// Space is the memory of the device.
	Space() comm.Space
	// Clear enqueues the zeroing of b.
	Clear(b comm.Buffer) error
}

// A deviceReducer is the allreduce of a bucket in device memory. A goroutine of the DDP waits until
// the device has computed the bucket's gradients and then does the allreduce, while the device
// computes the gradients below. So the device never waits. A stream that waits for the host is
// slower: other calls of the driver then block, and a step on an H200 shared by two ranks took 4
// times as long.
type deviceReducer struct {
	*task
	computed comm.Event // set behind the gradients
	failed   error      // why computed was not set
}

func (d *DDP) newDeviceReducer(b *bucket) (reducer, error) {
	computed, err := d.stream.NewEvent()
	if err != nil {
		return nil, err
	}
	w := &deviceReducer{computed: computed}
	w.task = d.runner.newTask(func(ctx context.Context) error {
		err := w.failed
		if err == nil {
			err = computed.Wait()
		}
		if err == nil {
			err = d.c.Allreduce(ctx, b.grads, b.grads, comm.Avg)
		}
		return err
	})
	return w, nil
}

func (w *deviceReducer) start() {
	w.failed = w.computed.Set()
	w.task.start()
}

func (w *deviceReducer) free(context.Context) { w.computed.Close() }

// mayCall returns the error of an earlier call, or one if the parameters are not in host memory.
func (d *DDP) mayCall(op string) error {
	if d.stream != nil {
		return fmt.Errorf("ddp: %s: want parameters in host memory", op)
	}
	return d.err
}

// syncStream waits until the device, if any, has done all work.
func (d *DDP) syncStream() error {
	if d.stream == nil {
		return nil
	}
	if err := d.stream.Sync(); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	return nil
}
