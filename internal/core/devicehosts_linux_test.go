package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// piped is elements of four bytes that go in nine chunks, of which the last is short.
const piped = 8<<18 + 1001

// sums does an allreduce of n elements on each rank's memory, nil for the host's, and
// checks what comes of it.
func sums(ctx context.Context, c *comm.Comm, s mem.Space, n int, op comm.Op, inPlace bool) error {
	send, want := make([]float32, n), make([]float32, n)
	p := float32(c.Size())
	for i := range send {
		send[i] = float32(c.Rank()) + float32(i%1000)*p
		if want[i] = p*(p-1)/2 + float32(i%1000)*p*p; op == comm.Avg {
			want[i] /= p
		}
	}
	got := make([]float32, n)
	if s == nil {
		return errors.Join(comm.Allreduce(ctx, c, send, got, op), equal("host memory", got, want))
	}
	from, err := clone(s, comm.Of(send))
	if err != nil {
		return err
	}
	defer s.Free(from)
	to := from
	if !inPlace {
		if to, err = s.Alloc(mem.F32, n); err != nil {
			return err
		}
		defer s.Free(to)
	}
	if err := c.Allreduce(ctx, from, to, op); err != nil {
		return err
	}
	return errors.Join(mem.Copy(comm.Of(got), to), equal("device memory", got, want))
}

// A long vector on devices of several hosts goes in chunks: never is so much of the host
// taken as the vector is long. On some ranks it may be in host memory.
func TestLongCUDAVectorsGoBetweenHostsInChunks(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	all := append(slices.Clone(places), []int32{0, 1}, []int32{0, 1, 2})
	for i, hostOf := range all {
		if testing.Short() && i%3 > 0 {
			continue
		}
		err := errors.Join(overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(inChunks(ctx, d, devices[hostOf[c.Rank()]%2]), d.Close(ctx)); err != nil {
				return err
			}
			return comm.Barrier(ctx, c)
		})...)
		if err != nil {
			t.Errorf("%v: %v", hostOf, err)
		}
	}
}

func inChunks(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
	if err := errors.Join(sums(ctx, c, d, piped, comm.Sum, true), sums(ctx, c, d, piped, comm.Avg, false)); err != nil {
		return err
	}
	if n := inside(c).Staged(); n > 8<<20 {
		return fmt.Errorf("%d bytes of host memory were taken: want eight chunks at most", n)
	}
	var space mem.Space = d
	if c.Rank() == 1 {
		space = nil
	}
	return sums(ctx, c, space, piped, comm.Sum, false)
}

// Every long collective whose length all ranks know goes in chunks, whichever of them
// have devices, and in place, too; never is so much of the host taken as it is long.
func TestLongCollectivesOfCUDAMemoryGoBetweenHostsInChunks(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for who, space := range map[string]func(rank int) mem.Space{
		"all on devices":  func(rank int) mem.Space { return devices[rank%2] },
		"one on a device": func(rank int) mem.Space { return []mem.Space{nil, devices[1], nil, nil}[rank] },
	} {
		for i, hostOf := range [][]int32{{0, 1}, {0, 0, 1, 1}} {
			if testing.Short() && i > 0 {
				continue
			}
			p := len(hostOf)
			var qs []question
			for i, kind := range everyKind {
				switch kind {
				case "barrier", "gatherv", "scatterv", "alltoallv":
					continue
				}
				q := question{kind: kind, ranks: p, n: piped / p, root: p - 1, gaps: true}
				if reduces(kind) {
					q.op = deviceOps[i%len(deviceOps)]
				}
				if kind == "bcast" || reduces(kind) && kind != "reducescatter" && kind != "reducescatterblock" {
					q.n = piped/2 + 1
				}
				if kind == "reducescatter" || kind == "allgatherv" {
					q.n = piped / 2 // some blocks are short
				}
				if !testing.Short() {
					qs = append(qs, q)
				}
				q.inPlace = true
				qs = append(qs, q)
			}
			err := errors.Join(overHosts(t, hostOf, comm.Config{Deterministic: p == 2},
				func(ctx context.Context, c *comm.Comm) error {
					d, err := c.Dup(ctx)
					if err != nil {
						return err
					}
					if err := errors.Join(answerOn(ctx, d, space(c.Rank()), qs), d.Close(ctx)); err != nil {
						return err
					}
					if n := inside(c).Staged(); n > 9<<20 {
						return fmt.Errorf("%d bytes of host memory were taken: want eight chunks and a little", n)
					}
					return comm.Barrier(ctx, c)
				})...)
			if err != nil {
				t.Errorf("%v, %s: %v", hostOf, who, err)
			}
		}
	}
}

// A device that fails while chunks are on their way, and a rank that dies, end it on
// all ranks.
func TestChunksOfCUDAVectorsThatStopEndItForAll(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	hostOf := []int32{0, 0, 1, 1}
	run := func(fn func(ctx context.Context, c *comm.Comm, d *cudaops.Device) error) []error {
		return overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			d := devices[hostOf[c.Rank()]]
			if err := sums(ctx, c, d, piped, comm.Sum, true); err != nil {
				return fmt.Errorf("at first: %w", err)
			}
			return fn(ctx, c, d)
		})
	}
	for _, fail := range []string{"cuMemcpyAsync:12=719", "cuMemcpyAsync:60=719", "cuMemcpyAsync:120=719"} {
		t.Setenv("FAKECUDA_FAIL", "")
		errs := run(func(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
			b, err := d.Alloc(mem.I32, piped)
			if err != nil {
				return err
			}
			defer d.Free(b)
			whole := b.Slice(0, piped/4*4)
			return failing(ctx, t, c, fail, func() error {
				err := c.Allreduce(ctx, b, b, comm.Sum)
				if err == nil {
					err = c.Bcast(ctx, 3, b)
				}
				if err == nil {
					err = c.Alltoall(ctx, whole, whole)
				}
				return err
			})
		})
		allFailed(t, fail, errs)
	}
	t.Setenv("FAKECUDA_FAIL", "")
	for victim := range len(hostOf) {
		run(func(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
			untilDeath(t, c, victim, func() error { return sums(ctx, c, d, piped, comm.Sum, true) })
			return nil
		})
	}
}
