package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// Collectives of several communicators, and messages, are in the order of several
// streams, which dawdle as ranks do, wherever chance has it: each stops for its own alone.
// So it is where NCCL does the collectives.
func TestStressCollectivesAndMessagesOnStreams(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	t.Setenv("FAKECUDA_DELAY", "500")
	const p = 3
	end := stress.Until(t)
	for seed := uint64(0); seed == 0 || time.Now().Before(end); seed++ {
		work := func(ctx context.Context, c *comm.Comm) error { return streamWork(ctx, c, devices, seed) }
		if err := errors.Join(onCUDA(t, p, comm.Config{}, work)...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := onNCCL(t, []int32{0, 1, 1}, byNCCL, work); err != nil {
			t.Fatalf("seed %d, with NCCL: %v", seed, err)
		}
	}
}

// streamWork adds to vectors on streams what differs on the ranks, and makes them equal
// again, in turns.
func streamWork(ctx context.Context, c *comm.Comm, devices []*cudaops.Device, seed uint64) error {
	const streams, steps = 3, 20
	chance, own := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, uint64(1+c.Rank())))
	other, err := c.Dup(ctx)
	if err != nil {
		return err
	}
	comms := []*comm.Comm{c, other}
	var tracks []*track
	for range streams {
		l, err := newTrack(ctx, comms, devices[c.Rank()%len(devices)])
		if err != nil {
			return err
		}
		tracks = append(tracks, l)
	}
	var rs []comm.Request
	for range steps {
		stress.Pause(own)
		l := tracks[chance.IntN(streams)]
		r, err := l.step(comms[chance.IntN(len(comms))], chance.IntN(3))
		if err != nil {
			return err
		}
		rs = append(rs, r...)
	}
	for i, l := range tracks {
		if err := l.check(); err != nil {
			return fmt.Errorf("stream %d: %w", i, errors.Join(err, comm.WaitAll(ctx, rs...)))
		}
	}
	err = errors.Join(comm.WaitAll(ctx, rs...), comm.Barrier(ctx, c), other.Close(ctx))
	for _, l := range tracks {
		err = errors.Join(err, l.close())
	}
	return err
}

// A track is a stream with a vector x, equal on all ranks, whose elements are to be want.
type track struct {
	*streamer
	x, y, mine, out comm.Buffer
	want            float32
}

// newTrack returns a track for which the communicators have taken what they keep: later they
// would wait until no stream stops.
func newTrack(ctx context.Context, comms []*comm.Comm, d *cudaops.Device) (*track, error) {
	const n = 9000
	s, err := newStreamer(comms[0], d)
	if err != nil {
		return nil, err
	}
	l := &track{streamer: s, x: s.vector(n), y: s.vector(n), mine: s.vector(n), out: s.pinned(n)}
	for i := range mem.Slice[float32](l.out) {
		mem.Slice[float32](l.out)[i] = float32(s.c.Rank() + 1)
	}
	err = mem.Copy(l.mine, l.out)
	for _, c := range comms {
		err = errors.Join(err, c.Allreduce(ctx, l.y, l.y, comm.Sum), comm.Barrier(ctx, c))
	}
	return l, err
}

// step puts one of the ways to make x greater on the stream.
func (l *track) step(c *comm.Comm, how int) ([]comm.Request, error) {
	p := c.Size()
	if how == 0 {
		l.want += float32(p)
		err := l.q.Reduce(mem.Sum, l.x, l.x, l.mine)
		return []comm.Request{c.AllreduceOnStream(l.q, l.x, l.x, comm.Max)}, err
	}
	err := l.q.Reduce(mem.Sum, l.x, l.x, l.mine)
	if how == 1 {
		l.want += float32(p+1) / 2
		r := c.AllreduceOnStream(l.q, l.x, l.y, comm.Sum)
		return []comm.Request{r}, errors.Join(err, l.q.Copy(l.x, l.y), l.q.Divide(l.x, p))
	}
	l.want += float32(p)
	var rs []comm.Request
	for range p - 1 { // around the ring
		rs = append(rs, c.SendOnStream(l.q, (c.Rank()+1)%p, 0, l.x), c.RecvOnStream(l.q, (c.Rank()+p-1)%p, 0, l.y))
		err = errors.Join(err, l.q.Reduce(mem.Max, l.x, l.x, l.y))
	}
	return rs, err
}

// check waits for the stream and looks at what has come of x.
func (l *track) check() error {
	if err := errors.Join(l.q.Copy(l.out, l.x), l.q.Sync()); err != nil {
		return err
	}
	for i, got := range mem.Slice[float32](l.out) {
		if got != l.want {
			return fmt.Errorf("element %d is %v, want %v", i, got, l.want)
		}
	}
	return nil
}
