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

func numbers(b comm.Buffer) ([]float32, error) {
	host := make([]float32, b.Len())
	return host, b.Space().Copy(comm.Of(host), b)
}

// add puts on q what a backward pass would: gradient is added to that of parameter i.
func add(q *memtest.Stream, p *Tensor, rank, step, i int) {
	q.Do(func() error {
		sum, err := numbers(p.Grad)
		for j := range sum {
			sum[j] += gradient(rank, step, i, j)
		}
		return errors.Join(err, q.Space().Copy(p.Grad, comm.Of(sum)))
	})
}

// seeAverages puts on q what finds out whether every gradient is the average. q's Sync
// says what it found.
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

// Steps follow each other on the stream, and nobody waits for one but Finish of the next;
// or Finish waits for each, where no stream can be stopped.
func TestGradientsOfDevicesBecomeTheAverage(t *testing.T) {
	lengths := []int{3, 0, 1000, 7, 5000, 1}
	for i, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000}, {FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}, {}} {
		for _, size := range []int{1, 2, 4} {
			device := memtest.NewDevice("device")
			device.NoHolds = i == 3
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				q := newStream(t, device)
				params, err := onDevice(device, c.Rank(), lengths...)
				if err != nil {
					return err
				}
				d, err := NewOn(ctx, c, q, params, opts)
				if err != nil {
					return err
				}
				for step := range 3 {
					d.ZeroGrad()
					for i, p := range slices.Backward(params) {
						add(q, p, c.Rank(), step, i)
						d.Ready(i)
					}
					if err := d.Finish(ctx); err != nil {
						return err
					}
					seeAverages(q, params, size, step)
				}
				if err := errors.Join(q.Sync(), d.Wait(ctx)); err != nil {
					return err
				}
				if got := d.Stats(); got.Steps != 3 || got.Bytes != 3*4*6011 || got.Exposed <= 0 {
					return fmt.Errorf("stats are %+v after 3 steps of 6011 numbers", got)
				}
				return d.Close(ctx)
			})
			if got := device.InUse(); got != size*len(lengths) {
				t.Errorf("%d ranks leave %d blocks of the device, want the %d of their parameters", size, got, size*len(lengths))
			}
		}
	}
}

// Ready and Finish have returned before the device computes anything. It goes on with
// the second gradient only when it sees the average of the first: that has to be made
// meanwhile. What it does after Finish sees all averages.
func TestBucketsAreAveragedWhileTheDeviceComputes(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		q := newStream(t, device)
		params, err := onDevice(device, c.Rank(), 4, 4, 4)
		if err != nil {
			return err
		}
		d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 4})
		if err != nil {
			return err
		}
		for i := range slices.Backward(params) {
			d.Ready(i)
		}
		if err := d.Finish(ctx); err != nil { // the first one waits
			return err
		}
		finished := make(chan struct{})
		q.Do(func() error { <-finished; return nil })
		for i, p := range slices.Backward(params) {
			add(q, p, c.Rank(), 0, i)
			d.Ready(i)
			if i > 0 {
				q.Do(func() error { return seeAverage(ctx, params[i], 2, i) })
			}
		}
		if err := d.Finish(ctx); err != nil {
			return err
		}
		seeAverages(q, params, 2, 0)
		close(finished)
		return errors.Join(q.Sync(), d.Close(ctx))
	})
}

// The first step makes the buckets anew, in the device's memory. The second, which waits as the
// first does, and those after it find the right averages there.
func TestFirstStepsOrderMakesTheBucketsOnDevices(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		q := newStream(t, device)
		params, err := onDevice(device, c.Rank(), 4, 4, 4)
		if err != nil {
			return err
		}
		d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 4})
		if err != nil {
			return err
		}
		for step := range 4 {
			d.ZeroGrad()
			for i, p := range params {
				add(q, p, c.Rank(), step, i)
				d.Ready(i)
			}
			if waits := d.mayNotStop(); waits != (step < 2) {
				return fmt.Errorf("step %d waits: %v", step, waits)
			}
			if err := d.Finish(ctx); err != nil {
				return err
			}
			seeAverages(q, params, 2, step)
			if got := fmt.Sprint(bucketParams(d)); got != "[[0] [1] [2]]" {
				return fmt.Errorf("buckets are %v", got)
			}
		}
		order := d.BucketOrder()
		if err := errors.Join(q.Sync(), d.Close(ctx)); err != nil {
			return err
		}
		return goesOnInOrder(ctx, c, q, params, order)
	})
	if got := device.InUse(); got != 2*3 {
		t.Errorf("%d blocks are in use, want those of the parameters", got)
	}
}

// goesOnInOrder makes steps with buckets of a known order: the first alone waits.
func goesOnInOrder(ctx context.Context, c *comm.Comm, q *memtest.Stream, params []*Tensor, order []int) error {
	d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 4, BucketOrder: order})
	if err != nil {
		return err
	}
	for step := range 3 {
		d.ZeroGrad()
		for i, p := range params {
			add(q, p, c.Rank(), step, i)
			d.Ready(i)
		}
		if waits := d.mayNotStop(); waits != (step < 1) || fmt.Sprint(bucketParams(d)) != "[[0] [1] [2]]" {
			return fmt.Errorf("step %d waits: %v, buckets are %v", step, waits, bucketParams(d))
		}
		if err := d.Finish(ctx); err != nil {
			return err
		}
		seeAverages(q, params, 2, step)
	}
	return errors.Join(q.Sync(), d.Close(ctx))
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

// trainer is a rank with one parameter on a device, which has done its first step.
type trainer struct {
	q      *memtest.Stream
	d      *DDP
	params []*Tensor
}

func newTrainer(ctx context.Context, c *comm.Comm, device *memtest.Device) (*trainer, error) {
	q := device.OpenStream()
	params, err := onDevice(device, c.Rank(), 4)
	if err != nil {
		return nil, err
	}
	d, err := NewOn(ctx, c, q, params, Options{})
	if err != nil {
		return nil, err
	}
	tr := &trainer{q, d, params}
	return tr, tr.step(ctx, 0)
}

func (tr *trainer) close(ctx context.Context) error {
	return errors.Join(tr.d.Close(ctx), tr.q.Close())
}

// step computes for so long, and averages.
func (tr *trainer) step(ctx context.Context, takes time.Duration) error {
	tr.q.Do(func() error { time.Sleep(takes); return nil })
	tr.d.Ready(0)
	return tr.d.Finish(ctx)
}

// A device that is done first stands still until the other is, too, and only that
// counts: not what it computes itself, and not that the host waits for it. The time is
// that of a bubble.
func TestExposedIsHowLongTheDeviceStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := memtest.NewDevice("device")
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			tr, err := newTrainer(ctx, c, device)
			if err != nil {
				return err
			}
			for step, late := range []time.Duration{10, 0, 20} {
				takes := time.Hour
				if c.Rank() == 1 {
					takes += late * time.Minute
				}
				begin := time.Now()
				if err := tr.step(ctx, takes); err != nil {
					return err
				}
				if d := time.Since(begin); step == 0 && d != 0 { // the next waits for the averages of this one
					return fmt.Errorf("Finish took %v", d)
				}
			}
			want := time.Duration(0)
			if c.Rank() == 0 {
				want = 30 * time.Minute
			}
			if err := tr.d.Wait(ctx); err != nil {
				return err
			}
			if got := tr.d.Stats().Exposed; got != want {
				return fmt.Errorf("exposed are %v, want %v", got, want)
			}
			return tr.close(ctx)
		})
	})
}

// An average that fails after Finish is told by Wait, by the next Finish, or by Close,
// and the stream goes on.
func TestAveragesThatFailLaterAreTold(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, tr *trainer) error{
		"Wait":   func(ctx context.Context, tr *trainer) error { return tr.d.Wait(ctx) },
		"Finish": func(ctx context.Context, tr *trainer) error { return tr.step(ctx, 0) },
		"Close":  func(ctx context.Context, tr *trainer) error { return tr.d.Close(ctx) },
	} {
		finished := make(chan struct{})
		told := func(ctx context.Context, tr *trainer) error {
			err := tr.step(ctx, 0)
			if close(finished); err != nil {
				return err
			}
			if err := wantError(ask(ctx, tr), "ddp: bucket 0: iallreduce: rank 0", "rank 1", "a reason of its own"); err != nil {
				return err
			}
			if name != "Close" && (tr.d.Wait(ctx) == nil || tr.d.Finish(ctx) == nil) {
				return errors.New("it is told only once")
			}
			return tr.close(ctx)
		}
		device := memtest.NewDevice("device")
		commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			tr, err := newTrainer(ctx, c, device)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := told(ctx, tr); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return nil
			}
			<-finished
			tr.q.Close()
			return errors.New("a reason of its own")
		})
	}
}

// A context that ends ends a Wait, and nothing else.
func TestWaitForAveragesEndsWithItsContext(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		tr, err := newTrainer(ctx, c, device)
		if err != nil {
			return err
		}
		compute := make(chan struct{})
		tr.q.Do(func() error { <-compute; return nil })
		if err := tr.step(ctx, 0); err != nil {
			return err
		}
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("tired"))
		if err := wantError(tr.d.Wait(ended), "ddp: tired"); err != nil {
			return err
		}
		close(compute)
		return errors.Join(tr.d.Wait(ctx), tr.step(ctx, 0), tr.close(ctx))
	})
}

func TestParametersOnDevicesAreThoseOfRankZero(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		q := newStream(t, device)
		params, err := onDevice(device, c.Rank(), 5, 0, 100)
		if err != nil {
			return err
		}
		d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 40})
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

// A poorStream lacks what it is told to.
type poorStream struct {
	*memtest.Stream
	events, streams error
}

func (q poorStream) NewEvent() (comm.Event, error)    { return nil, q.events }
func (q poorStream) OpenStream() (comm.Stream, error) { return nil, q.streams }

func TestStreamThatFailsLeavesNoMemory(t *testing.T) {
	device := memtest.NewDevice("device")
	for what, poor := range map[string]poorStream{
		"no events today":  {events: errors.New("no events today")},
		"no streams today": {streams: errors.New("no streams today")},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			params, err := onDevice(device, 0, 3)
			if err != nil {
				return err
			}
			defer device.Free(params[0].Data)
			poor := poor
			poor.Stream = newStream(t, device)
			_, err = NewOn(ctx, c, poor, params, Options{})
			return wantError(err, what)
		})
	}
	if got := device.InUse(); got != 0 {
		t.Errorf("%d blocks are in use", got)
	}
}
