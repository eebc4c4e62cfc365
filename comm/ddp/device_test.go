package ddp

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem/memtest"
)

// A testQueue is a Queue of a memtest.Device whose work is functions.
type testQueue struct {
	device *memtest.Device
	work   chan func() error
	fails  error // of NewMark
}

func newQueue(t *testing.T, d *memtest.Device) *testQueue {
	q := &testQueue{device: d, work: make(chan func() error, 100)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for f := range q.work {
			if err := f(); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() {
		close(q.work)
		<-ended
	})
	return q
}

func (q *testQueue) put(f func() error) { q.work <- f }
func (q *testQueue) Space() comm.Space  { return q.device }

func (q *testQueue) Clear(b comm.Buffer) error {
	q.put(func() error { return q.device.Copy(b, comm.Of(make([]byte, b.Size()))) })
	return nil
}

func (q *testQueue) Sync() error {
	m := &testMark{q: q}
	return errors.Join(m.Set(), m.Wait())
}

func (q *testQueue) NewMark() (comm.Mark, error) { return &testMark{q: q}, q.fails }

// A testMark is done when done is closed, or nil.
type testMark struct {
	q    *testQueue
	done chan struct{}
}

func (m *testMark) Set() error {
	done := make(chan struct{})
	m.done = done
	m.q.put(func() error { close(done); return nil })
	return nil
}

func (m *testMark) Done() (bool, error) {
	select {
	case <-m.done:
		return true, nil
	default:
		return m.done == nil, nil
	}
}

func (m *testMark) Wait() error {
	if m.done != nil {
		<-m.done
	}
	return nil
}

func (m *testMark) Close() error { return nil }

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
func add(q *testQueue, p *Tensor, rank, step, i int) {
	q.put(func() error {
		sum, err := numbers(p.Grad)
		for j := range sum {
			sum[j] += gradient(rank, step, i, j)
		}
		return errors.Join(err, q.device.Copy(p.Grad, comm.Of(sum)))
	})
}

func checkAverages(params []*Tensor, size, step int) error {
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
}

func TestGradientsOfDevicesBecomeTheAverage(t *testing.T) {
	lengths := []int{3, 0, 1000, 7, 5000, 1}
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000}, {FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}} {
		for _, size := range []int{1, 2, 4} {
			device := memtest.NewDevice("device")
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				q := newQueue(t, device)
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
					if err := checkAverages(params, size, step); err != nil {
						return err
					}
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

// The device goes on with the second gradient only when it sees the average of the
// first: that has to be made meanwhile. And Ready must not wait for any of it.
func TestBucketsAreAveragedWhileTheDeviceComputes(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		q := newQueue(t, device)
		params, err := onDevice(device, c.Rank(), 4, 4, 4)
		if err != nil {
			return err
		}
		d, err := NewOn(ctx, c, q, params, Options{FirstBucketBytes: 4, BucketBytes: 4})
		if err != nil {
			return err
		}
		announced := make(chan struct{})
		q.put(func() error { <-announced; return nil })
		for i, p := range slices.Backward(params) {
			add(q, p, c.Rank(), 0, i)
			d.Ready(i)
			if i > 0 {
				q.put(func() error { return seeAverage(ctx, params[i], 2, i) })
			}
		}
		if d.started != 0 {
			return fmt.Errorf("%d buckets have started before the device computed", d.started)
		}
		close(announced)
		if err := d.Finish(ctx); err != nil {
			return err
		}
		return errors.Join(checkAverages(params, 2, 0), d.Close(ctx))
	})
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

func TestParametersOnDevicesAreThoseOfRankZero(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		q := newQueue(t, device)
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
			q.put(func() error { return device.Copy(params[2].Data.Slice(0, 1), comm.Of([]float32{-1})) })
		}
		return errors.Join(wantError(d.CheckReplicas(ctx), "rank 1", `first "p2"`), d.Close(ctx))
	})
}

func TestSnapshotsGoFromDeviceToHostAndBack(t *testing.T) {
	device := memtest.NewDevice("device")
	path := filepath.Join(t.TempDir(), "snapshot")
	numbersOf := func(params []*Tensor) *Snapshot {
		s := &Snapshot{Step: 1}
		for _, p := range params {
			s.Slices = append(s.Slices, Slice{p.Name, p.Data})
		}
		return s
	}
	lengths := []int{3, 0, piece + 1}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params, err := onDevice(device, 7, lengths...)
		if err != nil {
			return err
		}
		if err := Save(ctx, c, path, numbersOf(params)); err != nil {
			return err
		}
		host := testParams(0, lengths...)
		s := &Snapshot{}
		for _, p := range host {
			s.Slices = append(s.Slices, Slice{p.Name, comm.Of(p.Data)})
		}
		others, err := onDevice(device, 0, lengths...)
		if err != nil {
			return err
		}
		for _, into := range []*Snapshot{s, numbersOf(others)} {
			if found, err := Load(ctx, c, path, into); !found || err != nil {
				return fmt.Errorf("found %v: %v", found, err)
			}
		}
		for i, want := range testParams(7, lengths...) {
			got, err := numbers(others[i].Data)
			if err != nil || !slices.Equal(got, want.Data) || !slices.Equal(host[i].Data, want.Data) {
				return fmt.Errorf("%s was not loaded as it was saved (%v)", want.Name, err)
			}
		}
		return nil
	})
}

func TestParametersThatTheQueueCannotComputeAreRefused(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		q := newQueue(t, memtest.NewDevice("here"))
		there := memtest.NewDevice("there")
		b, err := there.Alloc(comm.Of([]float32{}).Type(), 3)
		if err != nil {
			return err
		}
		_, err = NewOn(ctx, c, q, []*Tensor{{Name: "p", Data: b}}, Options{})
		if err := wantError(err, `parameter "p" is in there: want memory of here`); err != nil {
			return err
		}
		params, err := onDevice(q.device, 0, 3, 3)
		if err != nil {
			return err
		}
		if params[1].Data, err = q.device.Alloc(comm.Of([]float64{}).Type(), 3); err != nil {
			return err
		}
		_, err = NewOn(ctx, c, q, params, Options{})
		return wantError(err, `parameter "p1" has numbers of float64, the first float32`)
	})
}

func TestQueueThatFailsLeavesNoMemory(t *testing.T) {
	device := memtest.NewDevice("device")
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		q := newQueue(t, device)
		q.fails = errors.New("no marks today")
		params, err := onDevice(device, 0, 3)
		if err != nil {
			return err
		}
		_, err = NewOn(ctx, c, q, params, Options{})
		return wantError(err, "no marks today")
	})
	if got := device.InUse(); got != 2 {
		t.Errorf("%d blocks are in use, want the 2 of the parameters", got)
	}
}
