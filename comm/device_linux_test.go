package comm_test

import (
	"context"
	"errors"
	"fmt"
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
	"gompi/internal/mem/memtest"
)

// What ranks of one host do on devices, on the double of the driver.

// smallArena makes vectors of these tests take several steps: a slot has 32 KiB.
const smallArena = 128 << 10

// onArenas has ranks that share a device use arenas for vectors of any length.
const onArenas = "device.shared=1"

// onCUDA runs fn on p goroutine ranks of one host, on a communicator that is closed
// before the last one is: then what they have taken of the devices is free again.
func onCUDA(t *testing.T, p int, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	if cfg.DeviceArena == 0 {
		cfg.DeviceArena = smallArena
	}
	if cfg.Tuning == "" {
		cfg.Tuning = onArenas
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

// longQuestions are calls of all kinds that are long enough for devices. The first is
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

// Every collective of buffers that are all in the memory of one device, or of several
// that reach each other, is done there, and never touches the host's. Package cudaops
// tests the same with ranks that are processes.
func TestCollectivesRunOnCUDADevices(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	withoutStaging(t)
	ranks, lengths := []int{2, 3, 4, 5, 6, 7, 8}, []int{8200, 30_000}
	if testing.Short() {
		ranks, lengths = []int{2, 5}, []int{8200}
	}
	for _, p := range ranks {
		for name, device := range map[string]func(rank int) *cudaops.Device{
			"one device": func(int) *cudaops.Device { return devices[p%2] },
			"in turn":    func(rank int) *cudaops.Device { return devices[rank%2] },
			"neighbours": func(rank int) *cudaops.Device { return devices[2*rank/p] },
		} {
			err := errors.Join(onCUDA(t, p, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				return answerOn(ctx, c, device(c.Rank()), longQuestions(p, lengths[p%len(lengths)]))
			})...)
			if err != nil {
				t.Errorf("np=%d, %s: %v", p, name, err)
			}
		}
	}
}

// Where only some ranks have their buffers on devices, or some collectives are short,
// or where results must not depend on the way, host memory serves.
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
			err := errors.Join(onCUDA(t, p, comm.Config{Deterministic: p == 4}, func(ctx context.Context, c *comm.Comm) error {
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
	qs = append(qs, question{kind: "allreduce", ranks: 1, n: 1_100_000, op: mem.Sum}) // between hosts it would go in chunks
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

// Where ranks share a device, vectors of less than 4 MiB go through host memory, which is faster.
func TestShortVectorsOnASharedCUDADeviceAreStaged(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	for _, shared := range []bool{true, false} {
		err := errors.Join(overMemoryWith(t, 2, comm.Config{DeviceArena: smallArena}, func(ctx context.Context, c *comm.Comm) error {
			d := devices[c.Rank()]
			if shared {
				d = devices[0]
			}
			for _, n := range []int{1 << 20, 1<<20 - 1} { // the first is 4 MiB long
				if err := answerOn(ctx, c, d, []question{{kind: "allreduce", ranks: 2, n: n, op: comm.Sum}}); err != nil {
					return err
				}
				if want, staged := shared && n < 1<<20, c.Staged() > 0; staged != want {
					return fmt.Errorf("%d elements are staged: %v, want %v", n, staged, want)
				}
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("shared %v: %v", shared, err)
		}
	}
}

// Every operator gives for every type what it gives on the host.
func TestReductionsOnCUDADevicesAgreeWithTheHost(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	withoutStaging(t)
	const p, bytes = 3, 50_000
	err := errors.Join(onCUDA(t, p, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		for op := mem.Sum; op < mem.Custom; op++ {
			for typ := mem.NoType + 1; typ.Valid(); typ++ {
				if !op.Defined(typ) || testing.Short() && int(typ+mem.Type(op))%3 > 0 {
					continue
				}
				if err := agreesWithTheHost(ctx, c, devices[0], op, typ, bytes/typ.Size()); err != nil {
					return fmt.Errorf("%v of %v: %w", op, typ, err)
				}
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

func agreesWithTheHost(ctx context.Context, c *comm.Comm, d *cudaops.Device, op mem.Op, typ mem.Type, n int) error {
	r := rand.New(rand.NewPCG(uint64(c.Rank()), uint64(op)<<8|uint64(typ)))
	host := memtest.Operand(r, typ, n)
	b, err := clone(d, host)
	if err != nil {
		return err
	}
	defer d.Free(b)
	want, got := mem.HostBytes(typ, n, make([]byte, host.Size())), mem.HostBytes(typ, n, make([]byte, host.Size()))
	if err := errors.Join(c.Allreduce(ctx, host, want, op), c.Allreduce(ctx, b, b, op), mem.Copy(got, b)); err != nil {
		return err
	}
	if !memtest.Equal(got, want) {
		return errors.New("the device has another result than the host")
	}
	return nil
}

// What the way over devices needs may be missing on one rank: then all take the way
// through host memory, say so, and nothing is lost.
func TestWithoutCUDAArenasHostMemoryServes(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for what, how := range map[string]struct {
		fail  string
		arena int
		far   int // the device of the last rank, which the others do not reach
	}{
		"no export":     {fail: "cuIpcGetMemHandle:2=1"},
		"no stream":     {fail: "cuStreamCreate:5=2"},
		"no memory":     {arena: 8 << 30},
		"hardly any":    {arena: 4096},
		"other devices": {far: 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("FAKECUDA_FAIL", how.fail)
			t.Setenv("FAKECUDA_P2P", "0")
			var said strings.Builder
			log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
			err := errors.Join(onCUDA(t, 3, comm.Config{Logger: log, DeviceArena: how.arena}, func(ctx context.Context, c *comm.Comm) error {
				return answerOn(ctx, c, devices[c.Rank()/2*how.far], longQuestions(3, 8200)[:4])
			})...)
			if err != nil || strings.Count(said.String(), "collectives of device memory go through host memory") != 3 {
				t.Errorf("%v; said: %s", err, said.String())
			}
		})
	}
	err := errors.Join(onCUDA(t, 2, comm.Config{DeviceArena: -1}, func(ctx context.Context, c *comm.Comm) error {
		return answerOn(ctx, c, devices[0], longQuestions(2, 8200))
	})...)
	if err != nil {
		t.Errorf("without arenas: %v", err)
	}
}

// A device that fails in the middle of a long collective ends it on every rank, with
// the driver's words, and the rank.
func TestACUDADeviceThatFailsInTheMiddleIsToldToAll(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	for _, fail := range []string{"cuLaunchKernel:5=719", "cuMemcpyAsync:30=719", "cuEventQuery:10=719"} {
		t.Setenv("FAKECUDA_FAIL", "")
		errs := onCUDA(t, 4, quietly, func(ctx context.Context, c *comm.Comm) error {
			b, err := devices[0].Alloc(mem.F32, 200_000)
			if err != nil {
				return err
			}
			defer devices[0].Free(b)
			if err := c.Allreduce(ctx, b, b, comm.Sum); err != nil {
				return fmt.Errorf("at first: %w", err)
			}
			if c.Rank() == 0 {
				t.Setenv("FAKECUDA_FAIL", fail)
			}
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			return c.Allreduce(ctx, b, b, comm.Sum)
		})
		call, _, _ := strings.Cut(fail, ":")
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "cuda:0: ") || !strings.Contains(err.Error(), call+": CUDA_ERROR_LAUNCH_FAILED (719)") {
				t.Errorf("%s: rank %d: %v", fail, r, err)
			}
		}
	}
}

// quietly is for tests of what is logged elsewhere.
var quietly = comm.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}

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

// A rank that dies while others work on devices, or wait for its arena, revokes the
// communicator on all of them.
func TestDeathAmongCUDADevicesRevokesTheCommunicator(t *testing.T) {
	d := leakyDevices(t)[0]
	const p = 3
	for victim := range p {
		for _, before := range []int{0, 1, 2} { // collectives that the victim takes part in
			overMemoryWith(t, p, comm.Config{DeviceArena: smallArena, Tuning: onArenas}, func(ctx context.Context, c *comm.Comm) error {
				b, err := d.Alloc(mem.F32, 100_000)
				if err != nil {
					return err
				}
				defer d.Free(b)
				for i := 0; err == nil; i++ {
					if c.Rank() == victim && i == before {
						c.Launcher().(*boot.Member).Die("killed by signal 9")
						return nil
					}
					err = c.Allreduce(ctx, b, b, comm.Sum)
				}
				if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
					t.Errorf("rank %d: %v", c.Rank(), problem)
				}
				return nil
			})
		}
	}
}

// Ranks that call different things, some of which go over devices, all get both calls.
func TestMismatchOnCUDADevicesIsToldToAllRanks(t *testing.T) {
	d := leakyDevices(t)[0]
	const p, where, n = 3, 1, 20_000
	calls := map[string]func(ctx context.Context, c *comm.Comm, b comm.Buffer) error{
		"bcast":     func(ctx context.Context, c *comm.Comm, b comm.Buffer) error { return c.Bcast(ctx, 0, b) },
		"allreduce": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error { return c.Allreduce(ctx, b, b, comm.Sum) },
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
			overMemoryWith(t, p, comm.Config{DeviceArena: smallArena, Tuning: onArenas}, func(ctx context.Context, c *comm.Comm) error {
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
