package comm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/boot"
	"gompi/internal/mem"
)

// A streamer is a rank with a stream, on which it does one collective after the other.
type streamer struct {
	c    *comm.Comm
	d    *cudaops.Device
	q    *cudaops.Stream
	host bool // its vectors are in host memory
	free []func()
}

func newStreamer(c *comm.Comm, d *cudaops.Device) (*streamer, error) {
	q, err := d.NewStream()
	return &streamer{c: c, d: d, q: q}, err
}

func (s *streamer) close() error {
	err := s.q.Close()
	for _, f := range s.free {
		f()
	}
	return err
}

// vector returns n elements of the device, zeroed.
func (s *streamer) vector(n int) comm.Buffer {
	if s.host {
		return s.pinned(n)
	}
	b, err := s.d.Alloc(mem.F32, n)
	if err != nil {
		panic(err)
	}
	s.free = append(s.free, func() { s.d.Free(b) })
	return b
}

// pinned returns n elements of pinned host memory.
func (s *streamer) pinned(n int) comm.Buffer {
	b, err := s.d.AllocHost(mem.F32, n)
	if err != nil {
		panic(err)
	}
	s.free = append(s.free, func() { s.d.FreeHost(b) })
	return b
}

// A streamForm is a collective on a stream, of n elements in a block, and what comes of
// it where every element that rank r sends in its block b is 10*r+b.
type streamForm struct {
	sends, recvs int // blocks
	call         func(c *comm.Comm, q comm.Stream, send, recv comm.Buffer) comm.Request
	want         func(c *comm.Comm, block int) int
}

func streamForms(p int) map[string]streamForm {
	total := func(c *comm.Comm, b int) int { return 5*p*(p-1) + b*p }
	return map[string]streamForm{
		"allreduce": {1, 1, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			return c.AllreduceOnStream(q, s, r, comm.Sum)
		}, total},
		"reduce": {1, 1, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			return c.ReduceOnStream(q, 0, s, r, comm.Sum)
		}, func(c *comm.Comm, b int) int {
			if c.Rank() > 0 {
				return 0
			}
			return total(c, b)
		}},
		"bcast": {1, 1, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			if c.Rank() == 1 {
				return c.BcastOnStream(q, 1, s)
			}
			return c.BcastOnStream(q, 1, r)
		}, func(c *comm.Comm, b int) int {
			if c.Rank() == 1 {
				return 0
			}
			return 10
		}},
		"reducescatter": {p, 1, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			return c.ReduceScatterOnStream(q, s, r, comm.Sum)
		}, func(c *comm.Comm, _ int) int { return total(c, c.Rank()) }},
		"allgather": {1, p, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			return c.AllgatherOnStream(q, s, r)
		}, func(c *comm.Comm, b int) int { return 10 * b }},
		"alltoall": {p, p, func(c *comm.Comm, q comm.Stream, s, r comm.Buffer) comm.Request {
			return c.AlltoallOnStream(q, s, r)
		}, func(c *comm.Comm, b int) int { return 10*b + c.Rank() }},
	}
}

// inOrder does f, and proves that it waits for what was on the stream before, and that
// what comes later waits for it. Nothing of rank 0's stream begins before all ranks
// have seen that the collective is not done, nor what is behind it.
func (s *streamer) inOrder(ctx context.Context, f streamForm, n int) error {
	in, out := s.pinned(n*f.sends), s.pinned(n*f.recvs)
	send, recv := s.vector(n*f.sends), s.vector(n*f.recvs)
	for i := range mem.Slice[float32](in) {
		mem.Slice[float32](in)[i] = float32(10*s.c.Rank() + i/n)
	}
	var before mem.StreamWait
	var err error
	if s.c.Rank() == 0 {
		if before, err = s.q.Hold(); err != nil {
			return err
		}
	}
	other, err := s.c.Dup(ctx)
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	err = s.q.Copy(send, in)
	r := f.call(s.c, s.q, send, recv)
	behind, err2 := s.d.NewEvent()
	if err := errors.Join(err, err2, s.q.Copy(out, recv), behind.Record(s.q)); err != nil {
		return err
	}
	if err := comm.Barrier(ctx, other); err != nil {
		return err
	}
	if s.c.Rank() == 0 { // of others the part may be done
		if later, err := behind.Done(); r.Done() || later || err != nil {
			return fmt.Errorf("it is done %v, and what is behind it %v, before what it waits for (%v)", r.Done(), later, err)
		}
		before.Release()
	}
	if err := errors.Join(s.q.Sync(), behind.Close()); err != nil { // nobody waits for r
		return err
	}
	for i, got := range mem.Slice[float32](out) {
		if want := float32(f.want(s.c, i/n)); got != want {
			_, err := r.Wait(ctx)
			return fmt.Errorf("element %d of %d is %v, want %v (%v)", i, out.Len(), got, want, err)
		}
	}
	_, err = r.Wait(ctx)
	return err
}

// Whether a collective goes over devices, is staged in shared memory or in messages, it is in
// the order of its stream.
func TestCollectivesOnCUDAStreamsAreInTheirOrder(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	t.Setenv("FAKECUDA_DELAY", "300")
	const p = 3
	for name, f := range streamForms(p) {
		for _, n := range []int{20_000, 100} {
			if testing.Short() && n == 100 {
				continue
			}
			one := func(ctx context.Context, c *comm.Comm) error {
				s, err := newStreamer(c, devices[0])
				if err != nil {
					return err
				}
				for range 2 {
					err = errors.Join(err, s.inOrder(ctx, f, n))
				}
				return errors.Join(err, s.close())
			}
			if err := errors.Join(onCUDA(t, p, comm.Config{}, one)...); err != nil {
				t.Errorf("%s of %d: %v", name, n, err)
			}
			commtest.Run(t, p, one)
		}
	}
}

// A step of a program: works and collectives on one stream, none of which is waited
// for.
func TestAStepOnACUDAStreamIsNeverWaitedFor(t *testing.T) {
	devices := cudaDevices(t)
	t.Setenv("FAKECUDA_DELAY", "300")
	const p, n, rounds = 4, 10_000, 20
	step := func(ctx context.Context, c *comm.Comm) error {
		s, err := newStreamer(c, devices[0])
		if err != nil {
			return err
		}
		x, y, out := s.vector(n), s.vector(n), s.pinned(n)
		for i := range mem.Slice[float32](out) {
			mem.Slice[float32](out)[i] = float32(c.Rank())
		}
		// Ranks of one process take memory, free it, and load kernels, while no stream stops.
		err = errors.Join(s.q.Clear(x), s.q.Clear(y), s.q.Reduce(mem.Sum, x, y, y), s.q.Divide(x, 2), s.q.Sync(),
			c.Allreduce(ctx, x, y, comm.Max), c.Allreduce(ctx, x, x, comm.Sum), comm.Barrier(ctx, c), s.q.Copy(x, out))
		var rs []comm.Request
		want := float32(0)
		for range rounds { // x of all together, halved, is x of all
			rs = append(rs, c.AllreduceOnStream(s.q, x, y, comm.Max))
			err = errors.Join(err, s.q.Reduce(mem.Sum, x, y, y), s.q.Divide(x, 2))
			rs = append(rs, c.AllreduceOnStream(s.q, x, x, comm.Sum))
			err = errors.Join(err, s.q.Divide(x, p))
			want = p - 1
		}
		if err := errors.Join(err, s.q.Copy(out, x), s.q.Sync(), comm.WaitAll(ctx, rs...)); err != nil {
			return err
		}
		for i, got := range mem.Slice[float32](out) {
			if got != want {
				return fmt.Errorf("element %d is %v, want %v", i, got, want)
			}
		}
		return errors.Join(comm.Barrier(ctx, c), s.close())
	}
	if err := errors.Join(onCUDA(t, p, comm.Config{}, step)...); err != nil {
		t.Error(err)
	}
}

// What fails, here or elsewhere, lets the stream go on, and is the Request's to tell.
func TestACUDAStreamGoesOnWhenItsCollectiveFails(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	die := func(c *comm.Comm) error {
		c.Launcher().(*boot.Member).Die("killed by signal 9")
		return errors.New("killed by signal 9")
	}
	for says, rank1 := range map[string]func(ctx context.Context, c *comm.Comm, s *streamer) error{
		"cuStreamWaitValue32_v2: CUDA_ERROR_NOT_SUPPORTED (801)": func(ctx context.Context, c *comm.Comm, s *streamer) error {
			t.Setenv("FAKECUDA_FAIL", "cuStreamWaitValue32_v2:1=801")
			b := s.vector(10)
			_, err := c.AllreduceOnStream(s.q, b, b, comm.Sum).Wait(ctx)
			return err
		},
		"killed by signal 9": func(_ context.Context, c *comm.Comm, _ *streamer) error { return die(c) },
		"signal 9": func(ctx context.Context, c *comm.Comm, s *streamer) error { // after a wrong argument, which breaks nothing
			_, err := c.AllreduceOnStream(s.q, s.vector(10), s.vector(11), comm.Sum).Wait(ctx)
			if err == nil || c.Err() != nil || s.q.Sync() != nil {
				return fmt.Errorf("a wrong argument: %v, and then %v", err, c.Err())
			}
			return die(c)
		},
	} {
		t.Setenv("FAKECUDA_FAIL", "")
		overMemory(t, 3, func(ctx context.Context, c *comm.Comm) error {
			s, err := newStreamer(c, devices[0])
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				if err := rank1(ctx, c, s); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("rank 1 got %v, want %q", err, says)
				}
				return s.close()
			}
			b := s.vector(10)
			r := c.AllreduceOnStream(s.q, b, b, comm.Sum)
			if err := s.q.Sync(); err != nil {
				t.Errorf("rank %d: the stream says %v", c.Rank(), err)
			}
			if _, err := r.Wait(ctx); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("rank %d got %v, want %q", c.Rank(), err, says)
			}
			return s.close()
		})
	}
}

// Numbers go around a ring of ranks on their streams, each adding to what it got, and
// nobody waits for a message.
func TestMessagesOnCUDAStreamsAreInTheirOrder(t *testing.T) {
	devices := cudaDevices(t)
	t.Setenv("FAKECUDA_DELAY", "300")
	const rounds = 5
	for _, p := range []int{1, 2, 3, 4} {
		for _, n := range []int{100, 40_000} {
			ring := func(ctx context.Context, c *comm.Comm) error {
				s, err := newStreamer(c, devices[c.Rank()%len(devices)])
				if err != nil {
					return err
				}
				x, mine, out := s.vector(n), s.vector(n), s.pinned(n)
				for i := range mem.Slice[float32](out) {
					mem.Slice[float32](out)[i] = float32(c.Rank() + 1)
				}
				// What all this takes of the device is taken while no stream stops.
				to, from := (c.Rank()+1)%p, (c.Rank()+p-1)%p
				_, err = c.Sendrecv(ctx, to, 1, x, from, 1, mine)
				err = errors.Join(err, mem.Copy(mine, out), comm.Barrier(ctx, c))
				var rs []comm.Request
				for range rounds * p {
					rs = append(rs, c.SendOnStream(s.q, to, 0, x), c.RecvOnStream(s.q, from, 0, x))
					err = errors.Join(err, s.q.Reduce(mem.Sum, x, x, mine))
				}
				if err := errors.Join(err, s.q.Copy(out, x), s.q.Sync(), comm.WaitAll(ctx, rs...)); err != nil {
					return err
				}
				for i, got := range mem.Slice[float32](out) {
					if want := float32(rounds * p * (p + 1) / 2); got != want {
						return fmt.Errorf("element %d of %d is %v, want %v", i, n, got, want)
					}
				}
				return errors.Join(comm.Barrier(ctx, c), s.close())
			}
			if err := errors.Join(onCUDA(t, p, comm.Config{}, ring)...); err != nil {
				t.Errorf("np=%d: %v", p, err)
			}
			commtest.Run(t, p, ring)
		}
	}
}

// A stream that cannot stop keeps its message to itself, and breaks nothing.
func TestAMessageNeedsACUDAStreamThatStops(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		s, err := newStreamer(c, devices[0])
		if err != nil {
			return err
		}
		b := s.vector(10)
		for _, r := range []func() comm.Request{
			func() comm.Request { return c.SendOnStream(s.q, 0, 0, b) },
			func() comm.Request { return c.RecvOnStream(s.q, 0, 0, b) },
		} {
			t.Setenv("FAKECUDA_FAIL", "")
			t.Setenv("FAKECUDA_FAIL", "cuStreamWaitValue32_v2:1=801")
			if _, err := r().Wait(ctx); err == nil || !strings.Contains(err.Error(), "cuStreamWaitValue32_v2: CUDA_ERROR_NOT_SUPPORTED (801)") {
				return fmt.Errorf("got %v", err)
			}
			t.Setenv("FAKECUDA_FAIL", "no more")
			if err := s.q.Sync(); err != nil {
				return err
			}
		}
		return errors.Join(c.Err(), s.close())
	})
}
