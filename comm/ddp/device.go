package ddp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/comm"
)

// A Queue is the work of a device, done in the order given, after the calls that
// put it there have returned: a *cudaops.Stream is one. Gradients are computed on it.
// One goroutine at a time uses a Queue.
type Queue interface {
	comm.Queue
	// Space is the memory of the device.
	Space() comm.Space
	// Clear puts the zeroing of b on the Queue.
	Clear(b comm.Buffer) error
	// NewQueue returns another Queue of the device, which waits for no other.
	NewQueue() (comm.Queue, error)
}

// A device computes the gradients of a DDP. Their averages are made on a queue of
// their own, which waits for the gradients of one bucket after the other, while the
// queue that computes goes on; Finish makes that one wait for the averages. So the host
// waits for nothing: it only tells the device in which order things are. Where queues
// cannot be stopped, Finish waits for everything.
type device struct {
	queue    Queue          // computes
	averages comm.Queue     // of allreduces
	computed comm.Mark      // of queue: where the gradients of a bucket are there
	finished comm.Mark      // of queue: where it was in the last Finish
	averaged comm.Mark      // of averages, at the same time
	last     []comm.Request // averages put there since then
	step     *deviceStep    // the last one, nil if it is over
	stops    bool           // queues can be stopped
}

// A deviceStep is one whose Finish has returned.
type deviceStep struct {
	over    chan struct{} // closed when the averages are there, before what follows is read
	err     error
	exposed time.Duration
}

// newDevice returns the device that q works on, for close to end also after an error.
func newDevice(q Queue) (*device, error) {
	v := &device{queue: q, stops: q.CanHold()}
	var err error
	if v.computed, err = q.NewMark(); err != nil {
		return v, err
	}
	if v.finished, err = q.NewMark(); err != nil {
		return v, err
	}
	if v.averages, err = q.NewQueue(); err != nil {
		return v, err
	}
	v.averaged, err = v.averages.NewMark()
	return v, err
}

// average puts the average of a bucket behind the work that the queue has now.
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

// finish makes later work of the queue wait for the averages. The step before is over.
func (v *device) finish() error {
	err := errors.Join(v.finished.Set(), v.averaged.Set())
	if err == nil {
		err = v.queue.After(v.averaged)
	}
	if err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	v.step = &deviceStep{over: make(chan struct{})}
	go v.step.follow(v.finished, v.last) // ends with the averages, or with the communicator
	v.last = nil
	return nil
}

// follow waits for the averages of a step. While the queue waits for them, too, the
// device has nothing else to do.
func (s *deviceStep) follow(finished comm.Mark, averages []comm.Request) {
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

// mayNotStop reports whether this is a step on a device in which no queue may stop. In
// the first, programs launch kernels for the first time, and allreduces take the memory
// that they keep: for both, drivers may wait until no queue stops. Other ranks may stop
// theirs: the averages are the same ones, in the same order.
func (d *DDP) mayNotStop() bool {
	return d.device != nil && (d.stats.Steps == 0 || !d.device.stops)
}

// averageAll averages the gradients without stopping a queue.
func (d *DDP) averageAll(ctx context.Context) {
	if err := d.device.queue.Sync(); err != nil {
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

// close gives back what newDevice made, and leaves the queue. The communicator is
// closed, so no queue stops any more.
func (v *device) close() error {
	if v.step != nil {
		<-v.step.over
	}
	var failed []error
	for _, m := range []comm.Mark{v.computed, v.finished, v.averaged} {
		if m != nil {
			failed = append(failed, m.Close())
		}
	}
	if v.averages != nil {
		failed = append(failed, v.averages.Close())
	}
	return errors.Join(failed...)
}

// Wait waits until the averages of the last Finish are there, and returns what has gone
// wrong so far: after an error gradients hold anything, and so may what later work of
// the queue made of them. In host memory Finish has waited. If ctx ends before, Wait
// returns its cause, and nothing else has happened.
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
