package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// upload moves a's memory to s; what shares memory still does. back is for the
// end: it brings the contents back and frees the device's.
func (a *args[T]) upload(s mem.Space) (back func() error, err error) {
	send, recv := comm.Of(a.send), comm.Of(a.recv)
	long, short := 0, 1
	host := [2]comm.Buffer{send, recv}
	if recv.Len() > send.Len() {
		long, short = 1, 0
	}
	a.on = new([2]comm.Buffer)
	owned := []int{long}
	if a.on[long], err = clone(s, host[long]); err != nil {
		return nil, err
	}
	if mem.Overlap(send, recv) {
		i := int(host[short].Addr()-host[long].Addr()) / int(unsafe.Sizeof(*new(T)))
		a.on[short] = a.on[long].Slice(i, i+host[short].Len())
	} else {
		owned = append(owned, short)
		if a.on[short], err = clone(s, host[short]); err != nil {
			return nil, err
		}
	}
	return func() error {
		var errs []error
		for _, i := range owned {
			errs = append(errs, mem.Copy(host[i], a.on[i]))
			s.Free(a.on[i])
		}
		a.on = nil
		return errors.Join(errs...)
	}, nil
}

// clone returns a copy of b in s.
func clone(s mem.Space, b comm.Buffer) (comm.Buffer, error) {
	d, err := s.Alloc(b.Type(), b.Len())
	if err != nil {
		return d, err
	}
	return d, s.Copy(d, b)
}

// answerOn is answerAll with memory of the rank's Space, or host memory if it is
// nil.
func answerOn(ctx context.Context, c *comm.Comm, s mem.Space, qs []question) error {
	e := reals[float32]()
	for i, q := range qs {
		a := ask(q, e, c.Rank())
		a.fill()
		back := func() error { return nil }
		if s != nil {
			var err error
			if back, err = a.upload(s); err != nil {
				return err
			}
		}
		spelling := 1 + (i+c.Rank())%(spellings-1) // that of slices is for host memory
		err := formOf[float32](q.kind).perform(ctx, c, spelling, &a.args)
		if err = errors.Join(err, back(), a.check()); err != nil {
			return fmt.Errorf("%v: spelling %d: %w", q, spelling, err)
		}
	}
	return nil
}

var deviceOps = []comm.Op{comm.Sum, comm.Max, comm.Min, comm.Avg}

// Every collective in every form takes memory that the processor cannot reach:
// on all ranks, and on some of them while others have host memory.
func TestCollectivesTakeDeviceMemory(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 8} {
		for _, kind := range everyKind {
			t.Run(fmt.Sprintf("%s/%d", kind, p), func(t *testing.T) {
				qs := questions(kind, p, []int{0, 1, p + 1, 1000}, deviceOps)
				devices := make([]*memtest.Device, p)
				inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
					d := memtest.NewDevice(fmt.Sprintf("gpu of rank %d", c.Rank()))
					devices[c.Rank()] = d
					if err := answerOn(ctx, c, d, qs); err != nil {
						return err
					}
					if c.Rank()%2 == 1 {
						return answerOn(ctx, c, nil, qs)
					}
					return answerOn(ctx, c, d, qs)
				})
				for r, d := range devices {
					if n := d.InUse(); n != 0 {
						t.Errorf("rank %d: %d allocations are left", r, n)
					}
				}
			})
		}
	}
}

// The same on cudaops, several ranks to a device.
func TestCollectivesTakeCUDAMemory(t *testing.T) {
	devices := cudaDevices(t)
	for _, p := range []int{1, 2, 4, 8} {
		var qs []question
		for i, kind := range everyKind {
			for _, n := range []int{1, 5000} {
				q := question{kind: kind, ranks: p, n: n, root: p - 1, gaps: i%2 == 0, inPlace: n == 1}
				if reduces(kind) {
					q.op = deviceOps[i%len(deviceOps)]
				}
				qs = append(qs, q)
			}
		}
		commtest.Run(t, p, func(ctx context.Context, c *comm.Comm) error {
			return answerOn(ctx, c, devices[c.Rank()%len(devices)], qs)
		})
	}
}

// cudaDevices returns the fake driver's devices, and checks at the end that their
// memory is free again.
func cudaDevices(t *testing.T) []*cudaops.Device {
	t.Helper()
	cudatest.Need(t)
	devices, err := cudaops.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		before, _, err := d.Memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if after, _, err := d.Memory(); err != nil || after != before && !cudatest.Real() {
				t.Errorf("%s: %d bytes are free after the test, %d were before (%v)", d.Name(), after, before, err)
			}
		})
	}
	return devices
}

// passAround sends a vector around a ring by every way to send and to receive.
func passAround(ctx context.Context, c *comm.Comm, s mem.Space, n int) error {
	e := integers[int64]()
	to, from := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	out, err := clone(s, comm.Of(e.vector(c.Rank(), n)))
	if err != nil {
		return err
	}
	defer s.Free(out)
	receive := map[string]func(tag int, b comm.Buffer) (comm.Status, error){
		"recv":  func(tag int, b comm.Buffer) (comm.Status, error) { return c.Recv(ctx, from, tag, b) },
		"irecv": func(tag int, b comm.Buffer) (comm.Status, error) { return c.Irecv(from, tag, b).Wait(ctx) },
		"mrecv": func(tag int, b comm.Buffer) (comm.Status, error) {
			m, err := c.Mprobe(ctx, from, tag)
			if err != nil {
				return comm.Status{}, err
			}
			return m.Recv(ctx, b)
		},
	}
	send := map[string]func(tag int) comm.Request{
		"isend":  func(tag int) comm.Request { return c.Isend(to, tag, out) },
		"issend": func(tag int) comm.Request { return c.Issend(to, tag, out) },
	}
	want := append(e.vector(from, n), 0)
	arrived := func(how string, st comm.Status, b comm.Buffer) error {
		got := make([]int64, n+1)
		err := s.Copy(comm.Of(got), b)
		s.Free(b)
		if st.Source != from || st.Count() != n {
			return fmt.Errorf("%s: %d elements from %d, want %d from %d", how, st.Count(), st.Source, n, from)
		}
		return errors.Join(err, equal(how, got, want))
	}
	tag := 0
	for _, sent := range []string{"isend", "issend"} {
		for _, got := range []string{"recv", "irecv", "mrecv"} {
			tag++
			in, err := s.Alloc(mem.I64, n+1)
			if err != nil {
				return err
			}
			r := send[sent](tag)
			st, err := receive[got](tag, in)
			if err != nil {
				return err
			}
			if _, err := r.Wait(ctx); err != nil {
				return err
			}
			if err := arrived(sent+" and "+got, st, in); err != nil {
				return err
			}
		}
	}
	in, err := s.Alloc(mem.I64, n+1)
	if err != nil {
		return err
	}
	st, err := c.Sendrecv(ctx, to, 99, out, from, 99, in)
	if err != nil {
		return err
	}
	return arrived("sendrecv", st, in)
}

func TestMessagesTakeDeviceMemory(t *testing.T) {
	for _, n := range []int{0, 1, 100, 40_000, 66_000, 600_000} {
		for _, p := range []int{1, 2, 5} {
			inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
				return passAround(ctx, c, memtest.NewDevice("gpu"), n)
			})
		}
	}
}

func TestMessagesTakeCUDAMemory(t *testing.T) {
	devices := cudaDevices(t)
	for _, n := range []int{0, 100, 40_000, 66_000} {
		for _, p := range []int{1, 2, 4, 8} {
			commtest.Run(t, p, func(ctx context.Context, c *comm.Comm) error {
				return passAround(ctx, c, devices[c.Rank()%len(devices)], n)
			})
		}
	}
}

// Messages to and from device memory keep their order among those of host memory.
func TestMessagesOfDeviceMemoryKeepTheirOrder(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d := memtest.NewDevice("gpu")
		var rs []comm.Request
		var in []comm.Buffer
		for i := range 50 {
			b := comm.Of([]int32{int32(i)})
			if (i+c.Rank())%3 == 0 {
				var err error
				if b, err = clone(d, b); err != nil {
					return err
				}
			}
			if c.Rank() == 0 {
				rs = append(rs, c.Isend(1, 7, b))
			} else {
				rs = append(rs, c.Irecv(0, 7, b))
			}
			in = append(in, b)
		}
		if err := comm.WaitAll(ctx, rs...); err != nil {
			return err
		}
		for i, b := range in {
			got := make([]int32, 1)
			if err := mem.Copy(comm.Of(got), b); err != nil {
				return err
			}
			if got[0] != int32(i) {
				return fmt.Errorf("message %d is %d", i, got[0])
			}
		}
		return nil
	})
}

// A receive into device memory is withdrawn, refused and cut short as one into
// host memory is.
func TestReceivesIntoDeviceMemoryFailAsOthers(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d := memtest.NewDevice("gpu")
		b, err := d.Alloc(mem.I32, 2)
		if err != nil {
			return err
		}
		if c.Rank() == 1 { // it leaves only then: receives from who has left fail, and are not canceled
			return errors.Join(c.Barrier(ctx), c.Send(ctx, 0, 1, comm.Of([]int32{1, 2, 3})),
				c.Send(ctx, 0, 2, comm.Of([]float32{1})))
		}
		r := c.Irecv(1, 5, b)
		if !r.Cancel() {
			return errors.New("a receive without a message was not canceled")
		}
		if _, err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("canceled receive: %v", err)
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		st, err := c.Recv(ctx, 1, 1, b)
		if !errors.Is(err, comm.ErrTruncated) || st.Count() != 3 {
			return fmt.Errorf("three elements for two: %d, %v", st.Count(), err)
		}
		got := make([]int32, 2)
		if err := d.Copy(comm.Of(got), b); err != nil {
			return err
		}
		if err := equal("what fits", got, []int32{1, 2}); err != nil {
			return err
		}
		if _, err := c.Irecv(1, 2, b).Wait(ctx); !errors.Is(err, comm.ErrType) {
			return fmt.Errorf("float32 for int32: %v", err)
		}
		return nil
	})
}

// A device that fails inside a collective breaks it on every rank, with the
// driver's words.
func TestADeviceThatFailsBreaksTheCollective(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	t.Setenv("FAKECUDA_FAIL", "cuMemcpyAsync:1=719")
	errs := commtest.Ranks(t.Context(), 4, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		var b comm.Buffer
		if c.Rank() == 2 {
			var err error
			if b, err = devices[0].Alloc(mem.F32, 100); err != nil {
				return err
			}
			defer devices[0].Free(b)
		} else {
			b = comm.Of(make([]float32, 100))
		}
		return c.Allreduce(ctx, b, b, comm.Sum)
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(),
			"cuda:0: copy of 400 bytes from cuda:0 to host: cuMemcpyAsync: CUDA_ERROR_LAUNCH_FAILED (719)") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Whether some rank may have devices is found when a communicator is made, and not by
// looking at all ranks in each collective.
func TestDevicesAreLookedForOncePerCommunicator(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		inside(c).ForgetDevices()
		return answerAll(ctx, c, reals[float32](), questions("allreduce", c.Size(), []int{0, 1000}, deviceOps))
	})
}
