package core_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/boot"
	"gompi/internal/mem"
)

// Device memory of ranks of one host, on the double of the driver.

// inChunksFrom has vectors go in chunks that are shorter than usual.
const inChunksFrom = "staged.chunk=16K"

// usualChunks has them go in chunks as usual.
const usualChunks = "staged.chunk=1M"

// onCUDA runs fn on p goroutine ranks of one host, on a communicator that is closed
// before the last one is: then what they have taken of the devices is free again.
func onCUDA(t *testing.T, p int, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	if cfg.Tuning == "" {
		cfg.Tuning = inChunksFrom
	}
	return overMemoryWith(t, p, cfg, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(fn(ctx, d), d.Close(ctx)); err != nil {
			return err
		}
		return comm.Barrier(ctx, c)
	})
}

// withoutStaging makes collectives fail that go through host memory.
func withoutStaging(t *testing.T) { t.Setenv("FAKECUDA_FAIL", "cuMemAllocHost_v2:1=2") }

// longQuestions are calls of all kinds that are long enough for NCCL or for chunks. The first is
// one in which every rank has something.
func longQuestions(p int, lengths ...int) (qs []question) {
	for _, n := range lengths {
		for i, kind := range everyKind {
			for _, inPlace := range []bool{false, true} {
				q := question{kind: kind, ranks: p, n: n, root: (p - 1) * (i % 2), gaps: i%3 == 0, inPlace: inPlace}
				if reduces(kind) {
					q.op = deviceOps[i%len(deviceOps)]
				}
				if kind == "allreduce" {
					qs = append([]question{q}, qs...)
				} else {
					qs = append(qs, q)
				}
			}
		}
	}
	return qs
}

// Some ranks may have their buffers on devices and others not, by call; short collectives
// are staged whole, others in chunks.
func TestCollectivesOfCUDAAndHostMemoryMix(t *testing.T) {
	devices := cudaDevices(t)
	for _, p := range []int{2, 3, 4} {
		for name, space := range map[string]func(rank, i int) mem.Space{
			"one rank with host memory": func(rank, i int) mem.Space {
				if rank == p-1 {
					return nil
				}
				return devices[0]
			},
			"changing from call to call": func(rank, i int) mem.Space {
				if (rank+i)%3 == 0 {
					return nil
				}
				return devices[i%len(devices)]
			},
			"all on devices, at times": func(rank, i int) mem.Space {
				if i%3 == 0 && rank == 1 {
					return nil
				}
				return devices[rank%len(devices)]
			},
		} {
			err := errors.Join(onCUDA(t, p, comm.Config{Deterministic: p == 4},
				func(ctx context.Context, c *comm.Comm) error {
					for i, q := range longQuestions(p, 8200, 11) {
						if err := answerOn(ctx, c, space(c.Rank(), i), []question{q}); err != nil {
							return err
						}
					}
					return nil
				})...)
			if err != nil {
				t.Errorf("np=%d, %s: %v", p, name, err)
			}
		}
	}
}

// One rank alone copies on its device, between devices and the host, or not at all.
func TestCollectivesOfOneRankStayOnItsCUDADevice(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	withoutStaging(t)
	var qs []question
	for i, kind := range everyKind {
		for _, op := range deviceOps {
			if !reduces(kind) {
				op = 0
			}
			for _, n := range []int{0, 1, 30_000} {
				qs = append(qs, question{kind: kind, ranks: 1, n: n, op: op, gaps: i%2 == 0, inPlace: n == 1})
			}
		}
	}
	// between hosts it would go in chunks
	qs = append(qs, question{kind: "allreduce", ranks: 1, n: 1_100_000, op: mem.Sum})
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		if err := answerOn(ctx, c, devices[1], qs); err != nil {
			return err
		}
		there, err := clone(devices[0], comm.Of([]float32{1, 2, 3}))
		if err != nil {
			return err
		}
		defer devices[0].Free(there)
		here := make([]float32, 3)
		if err := c.Allreduce(ctx, there, comm.Of(here), comm.Avg); err != nil {
			return err
		}
		return equal("from the device to the host", here, []float32{1, 2, 3})
	})
}

// agreesWithTheHost checks an allreduce of device memory against that of host memory.
func agreesWithTheHost(ctx context.Context, c *comm.Comm, d *cudaops.Device, op mem.Op, typ mem.Type, n int) error {
	r := rand.New(rand.NewPCG(uint64(c.Rank()), uint64(op)<<8|uint64(typ)))
	host := operand(r, typ, n)
	b, err := clone(d, host)
	if err != nil {
		return err
	}
	defer d.Free(b)
	want, got := mem.HostBytes(typ, n, make([]byte, host.Size())), mem.HostBytes(typ, n, make([]byte, host.Size()))
	if err := errors.Join(c.Allreduce(ctx, host, want, op), c.Allreduce(ctx, b, b, op), mem.Copy(got, b)); err != nil {
		return err
	}
	if !sameNumbers(got, want) {
		return errors.New("the device has another result than the host")
	}
	return nil
}

// quietly is for tests of what is logged elsewhere.
var quietly = comm.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}

// failing does work three times, in which the device of rank 0 fails.
func failing(ctx context.Context, t *testing.T, c *comm.Comm, fail string, work func() error) error {
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	if c.Rank() == 0 {
		t.Setenv("FAKECUDA_FAIL", fail)
	}
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	for range 3 {
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

// untilDeath does work until it fails, as it does once victim has died.
func untilDeath(t *testing.T, c *comm.Comm, victim int, work func() error) {
	t.Helper()
	if c.Rank() == victim {
		inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
		return
	}
	var err error
	for err == nil {
		err = work()
	}
	if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
		t.Errorf("rank %d: %v", c.Rank(), problem)
	}
}

// allFailed fails the test unless every rank has failed by the device failure that fail asked for.
func allFailed(t *testing.T, fail string, errs []error) {
	t.Helper()
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_LAUNCH_FAILED (719)") {
			t.Errorf("%s: rank %d: %v", fail, r, err)
		}
	}
}

// leakyDevices returns the devices for a test in which ranks end without having waited
// for each other: what others may still see is not freed then.
func leakyDevices(t *testing.T) []*cudaops.Device {
	t.Helper()
	cudatest.Need(t)
	devices, err := cudaops.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

// Ranks that call different things, some of which go in chunks, all get both calls.
func TestMismatchOnCUDADevicesIsReportedToAllRanks(t *testing.T) {
	d := leakyDevices(t)[0]
	const p, where, n = 3, 1, 20_000
	calls := map[string]func(ctx context.Context, c *comm.Comm, b comm.Buffer) error{
		"bcast": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error { return c.Bcast(ctx, 0, b) },
		"allreduce": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			return c.Allreduce(ctx, b, b, comm.Sum)
		},
		"scan": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			return c.Scan(ctx, b.Slice(0, 10), b.Slice(0, 10), comm.Sum)
		},
	}
	for one, call := range calls {
		for two, other := range calls {
			if one == two {
				continue
			}
			start := time.Now()
			overMemoryWith(t, p, comm.Config{Tuning: inChunksFrom}, func(ctx context.Context, c *comm.Comm) error {
				b, err := d.Alloc(mem.F32, n)
				if err != nil {
					return err
				}
				defer d.Free(b)
				mine := call
				if c.Rank() == where {
					mine = other
				}
				err = mine(ctx, c, b)
				if err == nil {
					err = comm.Barrier(ctx, c)
				}
				if problem := wrongMismatch(err, where, one, two); problem != nil {
					t.Errorf("%s against %s: rank %d: %v", one, two, c.Rank(), problem)
				}
				return nil
			})
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%s against %s: took %v", one, two, d)
			}
		}
	}
}
