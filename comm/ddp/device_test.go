package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem/memtest"
)

// newStream returns a Stream of d, whose work has to succeed.
func newStream(t *testing.T, d *memtest.Device) *memtest.Stream {
	q := d.OpenStream()
	t.Cleanup(func() { closeStream(t, q) })
	return q
}

func closeStream(t *testing.T, q *memtest.Stream) {
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// onDevice returns testParams in a device's memory.
func onDevice(d *memtest.Device, rank int, lengths ...int) ([]*Tensor, error) {
	var ts []*Tensor
	for _, p := range testParams(rank, lengths...) {
		b, err := d.Alloc(comm.Of(p.Data).Type(), len(p.Data))
		if err == nil {
			err = d.Copy(b, comm.Of(p.Data))
		}
		if err != nil {
			return nil, err
		}
		ts = append(ts, &Tensor{Name: p.Name, Data: b})
	}
	return ts, nil
}

// ddpOn returns a DDP over testParams in a device's memory, with its stream and parameters.
func ddpOn(
	ctx context.Context, t *testing.T, c *comm.Comm, device *memtest.Device, opts Options, lengths ...int,
) (*DDP, *memtest.Stream, []*Tensor, error) {
	q := newStream(t, device)
	params, err := onDevice(device, c.Rank(), lengths...)
	if err != nil {
		return nil, nil, nil, err
	}
	d, err := NewOn(ctx, c, q, params, opts)
	return d, q, params, err
}

func numbers(b comm.Buffer) ([]float32, error) {
	host := make([]float32, b.Len())
	return host, b.Space().Copy(comm.Of(host), b)
}

// add puts the work of a backward pass on q: gradient is added to the gradient of parameter i.
func add(q *memtest.Stream, p *Tensor, rank, step, i int) {
	q.Do(func() error {
		sum, err := numbers(p.Grad)
		for j := range sum {
			sum[j] += gradient(rank, step, i, j)
		}
		return errors.Join(err, q.Space().Copy(p.Grad, comm.Of(sum)))
	})
}

// seeAverages puts a check on q that every gradient is the average. q's Sync returns the result.
func seeAverages(q *memtest.Stream, params []*Tensor, size, step int) {
	q.Do(func() error {
		for i, p := range params {
			got, err := numbers(p.Grad)
			if err != nil {
				return err
			}
			for j := range got {
				if want := average(size, step, i, j); got[j] != want {
					return fmt.Errorf("step %d: %s[%d] is %v, want %v", step, p.Name, j, got[j], want)
				}
			}
		}
		return nil
	})
}

func TestGradientsOfDevicesBecomeTheAverage(t *testing.T) {
	lengths := []int{3, 0, 1000, 7, 5000, 1}
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000},
		{FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}} {
		for _, size := range []int{1, 2, 4} {
			device := memtest.NewDevice("device")
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				d, q, params, err := ddpOn(ctx, t, c, device, opts, lengths...)
				if err != nil {
					return err
				}
				for step := range 3 {
					if err := stepOn(ctx, q, d, params, c, step, lastToFirst(len(params))); err != nil {
						return err
					}
				}
				if err := q.Sync(); err != nil {
					return err
				}
				if got := d.Stats(); got.Steps != 3 || got.Bytes != 3*4*6011 || got.Exposed <= 0 {
					return fmt.Errorf("stats are %+v after 3 steps of 6011 numbers", got)
				}
				return d.Close(ctx)
			})
			if got := device.InUse(); got != size*len(lengths) {
				t.Errorf("%d ranks leave %d blocks of the device, want the %d of their parameters", size, got,
					size*len(lengths))
			}
		}
	}
}

// stepOn computes gradients in an order of the parameters and averages them.
func stepOn(ctx context.Context, q *memtest.Stream, d *DDP, params []*Tensor, c *comm.Comm, step int,
	order []int) error {
	d.ZeroGrad()
	for _, i := range order {
		add(q, params[i], c.Rank(), step, i)
		d.Ready(i)
	}
	if err := d.Finish(ctx); err != nil {
		return err
	}
	seeAverages(q, params, c.Size(), step)
	return nil
}

// The device begins when the whole backward pass was put on its stream. It continues with the
// second gradient only when it sees the average of the first: that has to be made meanwhile.
func TestBucketsAreAveragedWhileTheDeviceComputes(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, q, params, err := ddpOn(ctx, t, c, device, Options{FirstBucketBytes: 4, BucketBytes: 4}, 4, 4, 4)
		if err != nil {
			return err
		}
		enqueued := make(chan struct{})
		q.Do(func() error { <-enqueued; return nil })
		for i, p := range slices.Backward(params) {
			add(q, p, c.Rank(), 0, i)
			d.Ready(i)
			if i > 0 {
				q.Do(func() error { return seeAverage(ctx, params[i], 2, i) })
			}
		}
		close(enqueued)
		if err := d.Finish(ctx); err != nil {
			return err
		}
		seeAverages(q, params, 2, 0)
		return errors.Join(q.Sync(), d.Close(ctx))
	})
}

// The first step makes the buckets anew, in the device's memory, unless their order is known.
func TestFirstStepsOrderMakesTheBucketsOnDevices(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		q := newStream(t, device)
		params, err := onDevice(device, c.Rank(), 4, 4, 4)
		if err != nil {
			return err
		}
		opts := Options{FirstBucketBytes: 4, BucketBytes: 4}
		for range 2 {
			d, err := NewOn(ctx, c, q, params, opts)
			if err != nil {
				return err
			}
			for step := range 3 {
				if got := fmt.Sprint(bucketParams(d)); step == 0 && opts.BucketOrder != nil && got != "[[0] [1] [2]]" {
					return fmt.Errorf("buckets of a known order are %v", got)
				}
				if err := stepOn(ctx, q, d, params, c, step, []int{0, 1, 2}); err != nil {
					return err
				}
				if got := fmt.Sprint(bucketParams(d)); got != "[[0] [1] [2]]" {
					return fmt.Errorf("buckets are %v", got)
				}
			}
			opts.BucketOrder = d.BucketOrder()
			if err := errors.Join(q.Sync(), d.Close(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := device.InUse(); got != 2*3 {
		t.Errorf("%d blocks are in use, want those of the parameters", got)
	}
}

// seeAverage looks at p's gradient until it is the average.
func seeAverage(ctx context.Context, p *Tensor, size, i int) error {
	for ctx.Err() == nil {
		got, err := numbers(p.Grad)
		if err != nil || got[0] == average(size, 0, i, 0) {
			return err
		}
	}
	return fmt.Errorf("%s was not averaged while the device was busy: %w", p.Name, ctx.Err())
}

// A device that is done first stands still until the other is done, and only that time counts,
// neither its computation nor the host's wait. The bubble's time counts.
func TestExposedIsHowLongTheDeviceStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := memtest.NewDevice("device")
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			q := device.OpenStream()
			params, err := onDevice(device, c.Rank(), 4)
			if err != nil {
				return err
			}
			d, err := NewOn(ctx, c, q, params, Options{})
			if err != nil {
				return err
			}
			for _, late := range []time.Duration{10, 0, 20} {
				takes := time.Hour
				if c.Rank() == 1 {
					takes += late * time.Minute
				}
				q.Do(func() error { time.Sleep(takes); return nil })
				d.Ready(0)
				if err := d.Finish(ctx); err != nil {
					return err
				}
			}
			want := time.Duration(0)
			if c.Rank() == 0 {
				want = 30 * time.Minute
			}
			if got := d.Stats().Exposed; got != want {
				return fmt.Errorf("exposed are %v, want %v", got, want)
			}
			return errors.Join(d.Close(ctx), q.Close())
		})
	})
}

// A failure on one rank ends its Finish, and then the Finish of the other, waiting rank. Nothing
// continues behind Close: a bubble that ends waits for all goroutines.
func TestDevicesThatFailEndFinish(t *testing.T) {
	broken := errors.New("out of registers")
	for name, fail := range map[string]func(q *memtest.Stream, e *poorEvents){
		"the stream":      func(q *memtest.Stream, _ *poorEvents) { q.Do(func() error { return broken }) },
		"setting events":  func(_ *memtest.Stream, e *poorEvents) { e.set = broken },
		"waiting for one": func(_ *memtest.Stream, e *poorEvents) { e.wait = broken },
	} {
		t.Run(name, func(t *testing.T) {
			device := memtest.NewDevice("device")
			var errs []error
			synctest.Test(t, func(t *testing.T) {
				errs = commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
					q := &poorEvents{Stream: device.OpenStream()}
					defer q.Close()
					params, err := onDevice(device, c.Rank(), 4, 4)
					if err != nil {
						return err
					}
					defer device.Free(params[0].Data)
					defer device.Free(params[1].Data)
					d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 4})
					if err != nil {
						return err
					}
					if c.Rank() == 1 {
						fail(q.Stream, q)
					}
					d.Ready(1)
					d.Ready(0)
					err = d.Finish(ctx)
					if again := d.Finish(ctx); err != nil && again != err {
						err = fmt.Errorf("Finish says %w, and then %v", err, again)
					}
					return errors.Join(err, closing(d.Close(ctx)))
				})
			})
			if err := wantError(errs[1], "ddp: ", "out of registers"); err != nil {
				t.Error(err)
			}
			if name != "the stream" && !errors.Is(errs[0], comm.ErrRevoked) { // that may fail behind the averages
				t.Errorf("rank 0: %v, want ErrRevoked", errs[0])
			}
			if got := device.InUse(); got != 0 {
				t.Errorf("%d blocks are in use", got)
			}
		})
	}
}

// A context that ends while averages are waited for ends them.
func TestEndedContextEndsAveragesOfDevices(t *testing.T) {
	device := memtest.NewDevice("device")
	over := make(chan struct{})
	commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		d, _, _, err := ddpOn(ctx, t, c, device, Options{}, 4)
		if err != nil {
			return err
		}
		if c.Rank() == 1 { // which 0 waits for
			<-over
			return nil
		}
		defer close(over)
		d.Ready(0)
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("tired"))
		if err := wantError(d.Finish(ended), "ddp: bucket 0: ", "tired"); err != nil {
			t.Error(err)
		}
		return d.Close(ctx)
	})
}

func TestParametersOnDevicesAreThoseOfRankZero(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		d, q, params, err := ddpOn(ctx, t, c, device, Options{FirstBucketBytes: 4, BucketBytes: 40}, 5, 0, 100)
		if err != nil {
			return err
		}
		for i, want := range testParams(0, 5, 0, 100) {
			if got, err := numbers(params[i].Data); err != nil || !slices.Equal(got, want.Data) {
				return fmt.Errorf("%s is %v (%v), want %v", want.Name, got, err, want.Data)
			}
		}
		if err := d.CheckReplicas(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 {
			q.Do(func() error { return device.Copy(params[2].Data.Slice(0, 1), comm.Of([]float32{-1})) })
		}
		return errors.Join(wantError(d.CheckReplicas(ctx), "rank 1", `first "p2"`), d.Close(ctx))
	})
}

func TestParametersThatTheStreamCannotComputeAreRefused(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		here := memtest.NewDevice("here")
		q := newStream(t, here)
		there := memtest.NewDevice("there")
		b, err := there.Alloc(comm.Of([]float32{}).Type(), 3)
		if err != nil {
			return err
		}
		_, err = NewOn(ctx, c, q, []*Tensor{{Name: "p", Data: b}}, Options{})
		if err := wantError(err, `parameter "p" is in there: want memory of here`); err != nil {
			return err
		}
		params, err := onDevice(here, 0, 3, 3)
		if err != nil {
			return err
		}
		if params[1].Data, err = here.Alloc(comm.Of([]bool{}).Type(), 3); err != nil {
			return err
		}
		_, err = NewOn(ctx, c, q, params, Options{})
		return wantError(err, `parameter "p1" has numbers of bool: want a type that has averages`)
	})
}

// poorEvents is a Stream whose events fail as they are told.
type poorEvents struct {
	*memtest.Stream
	none, set, wait error
}

type poorEvent struct {
	comm.Event
	q *poorEvents
}

func (q *poorEvents) NewEvent() (comm.Event, error) {
	e, err := q.Stream.NewEvent()
	return poorEvent{e, q}, errors.Join(q.none, err)
}

func (e poorEvent) Set() error  { return errors.Join(e.q.set, e.Event.Set()) }
func (e poorEvent) Wait() error { return errors.Join(e.q.wait, e.Event.Wait()) }

func TestStreamThatFailsLeavesNoMemory(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params, err := onDevice(device, 0, 3)
		if err != nil {
			return err
		}
		defer device.Free(params[0].Data)
		_, err = NewOn(ctx, c, &poorEvents{Stream: newStream(t, device), none: errors.New("no events today")},
			params, Options{})
		return wantError(err, "no events today")
	})
	if got := device.InUse(); got != 0 {
		t.Errorf("%d blocks are in use", got)
	}
}
