package ddp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/comm"
)

// A Stream is the work of a device, done in the order given, after the calls that
// put it there have returned: a *cudaops.Stream is one. Gradients are computed on it.
// One goroutine at a time uses a Stream.
type Stream interface {
	comm.Stream
	// Space is the memory of the device.
	Space() comm.Space
	// Clear puts the zeroing of b on the Stream.
	Clear(b comm.Buffer) error
	// OpenStream returns another Stream of the device, which waits for no other.
	OpenStream() (comm.Stream, error)
}

// A device computes the gradients of a DDP. A second stream averages them: it waits for the
// gradients of each bucket in turn, while the compute stream continues. Finish makes the compute
// stream wait for the averages. So the host only enqueues work and events, and waits for neither.
// If streams cannot be stopped, Finish waits for everything.
type device struct {
	stream   Stream         // computes
	averages comm.Stream    // of allreduces
	computed comm.Event     // of stream: where the gradients of a bucket are there
	finished comm.Event     // of stream: where it was in the last Finish
	averaged comm.Event     // of averages, at the same time
	last     []comm.Request // averages put there since then
	step     *deviceStep    // the last one, nil if it is over
	stops    bool           // streams can be stopped
}

// A deviceStep is one whose Finish has returned.
type deviceStep struct {
	over    chan struct{} // closed when the averages are there, before what follows is read
	err     error
	exposed time.Duration
}

// newDevice returns the device that q works on, for close to end also after an error.
func newDevice(q Stream) (*device, error) {
	v := &device{stream: q, stops: q.CanHold()}
	var err error
	if v.computed, err = q.NewEvent(); err != nil {
		return v, err
	}
	if v.finished, err = q.NewEvent(); err != nil {
		return v, err
	}
	if v.averages, err = q.OpenStream(); err != nil {
		return v, err
	}
	v.averaged, err = v.averages.NewEvent()
	return v, err
}

// average puts the average of a bucket behind the work that the stream has now.
func (v *device) average(c *comm.Comm, b *bucket) error {
	err := v.computed.Set()
	if err == nil {
		err = v.averages.After(v.computed)
	}
	if err == nil {
		v.last = append(v.last, c.AllreduceOnStream(v.averages, b.grads, b.grads, comm.Avg))
	}
	return err
}

// finish makes later work of the stream wait for the averages. The step before is over.
func (v *device) finish() error {
	err := errors.Join(v.finished.Set(), v.averaged.Set())
	if err == nil {
		err = v.stream.After(v.averaged)
	}
	if err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	v.step = &deviceStep{over: make(chan struct{})}
	go v.step.follow(v.finished, v.last) // ends with the averages, or with the communicator
	v.last = nil
	return nil
}

// follow waits for the averages of a step. While the stream waits for them, too, the
// device has nothing else to do.
func (s *deviceStep) follow(finished comm.Event, averages []comm.Request) {
	defer close(s.over)
	if err := finished.Wait(); err != nil {
		s.err = fmt.Errorf("ddp: %w", err)
	}
	begin := time.Now()
	for i, r := range averages {
		if _, err := r.Wait(context.Background()); s.err == nil {
			s.err = ofBucket(i, err)
		}
	}
	s.exposed = time.Since(begin)
}

// mayNotStop reports whether this is a step on a device in which no stream may stop. In the first
// step with new buckets, kernels are loaded and allreduces allocate memory that they keep. In both,
// the driver may wait until no stream is stopped. Other ranks may stop their streams in the same
// step: all ranks do the same allreduces in the same order.
func (d *DDP) mayNotStop() bool {
	return d.device != nil && (d.fresh || !d.device.stops)
}

// averageAll averages the gradients without stopping a stream.
func (d *DDP) averageAll(ctx context.Context) {
	if err := d.device.stream.Sync(); err != nil {
		d.note(fmt.Errorf("ddp: %w", err))
		return
	}
	begin := time.Now()
	for i := 0; i < len(d.buckets) && d.err == nil; i++ {
		b := d.buckets[i]
		d.note(ofBucket(i, d.c.Allreduce(ctx, b.grads, b.grads, comm.Avg)))
	}
	d.stats.Exposed += time.Since(begin)
}

// close gives back what newDevice made, and leaves the stream. The communicator is
// closed, so no stream stops any more.
func (v *device) close() error {
	if v.step != nil {
		<-v.step.over
	}
	var failed []error
	for _, m := range []comm.Event{v.computed, v.finished, v.averaged} {
		if m != nil {
			failed = append(failed, m.Close())
		}
	}
	if v.averages != nil {
		failed = append(failed, v.averages.Close())
	}
	return errors.Join(failed...)
}

// Wait waits until the averages of the last Finish are complete, and returns the first error so
// far. After an error the gradients, and all that the stream computed from them, are undefined. In
// host memory Finish has waited already. If ctx ends first, Wait returns its cause and can be
// called again.
func (d *DDP) Wait(ctx context.Context) error {
	if d.device == nil || d.device.step == nil {
		return d.err
	}
	s := d.device.step
	select {
	case <-s.over:
	case <-ctx.Done():
		return fmt.Errorf("ddp: %w", context.Cause(ctx))
	}
	d.device.step = nil
	d.stats.Exposed += s.exposed
	d.note(s.err)
	return d.err
}
