package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/boot"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// Collectives by NCCL, on the doubles of it and of the driver.

// byNCCL is for ranks that have nothing but NCCL for long vectors of devices, once
// staging is forbidden.
var byNCCL = comm.Config{CUDA: "nccl"}

// libraryQuestions are those of longQuestions that NCCL does.
func libraryQuestions(p int, lengths ...int) []question {
	return slices.DeleteFunc(longQuestions(p, lengths...), func(q question) bool {
		switch q.kind {
		case "scan", "exscan", "reducescatter":
			return true
		case "alltoall", "alltoallv":
			return q.inPlace
		}
		return reduces(q.kind) && !mem.GroupReduces(q.op, mem.I32)
	})
}

// onNCCL runs fn on goroutine ranks, of which the i-th is on host hostOf[i], on a
// communicator of them all.
func onNCCL(t *testing.T, hostOf []int32, cfg comm.Config, fn rankFunc) error {
	t.Helper()
	return errors.Join(overHosts(t, hostOf, cfg, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(fn(ctx, d), d.Close(ctx)); err != nil {
			return err
		}
		return comm.Barrier(ctx, c)
	})...)
}

// ncclPlaces are one host, several, and one alone.
var ncclPlaces = [][]int32{{0, 0}, {0, 0, 0}, {0, 0, 0, 0}, {0, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1}, {0, 1, 2, 2}}

// manyDevices returns the devices, at least as many as the ranks of these tests.
func manyDevices(t *testing.T) []*cudaops.Device {
	t.Helper()
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	if len(devices) < 4 {
		t.Fatalf("%d devices: want 4", len(devices))
	}
	return devices
}

// NCCL does every collective that it has, on one host and between hosts: nothing else
// could. A communicator of some of the ranks has a group of its own.
func TestNCCLDoesCollectivesOfCUDADevices(t *testing.T) {
	devices := manyDevices(t)
	cudaDevices(t)
	withoutStaging(t)
	for i, hostOf := range ncclPlaces {
		if testing.Short() && i%3 != 2 {
			continue
		}
		p := len(hostOf)
		err := onNCCL(t, hostOf, byNCCL, func(ctx context.Context, c *comm.Comm) error {
			d := devices[c.Rank()]
			if err := answerOn(ctx, c, d, libraryQuestions(p, 8200, 30_000)); err != nil || p < 4 {
				return err
			}
			half, err := c.Split(ctx, c.Rank()%2, -c.Rank())
			if err != nil {
				return err
			}
			return errors.Join(answerOn(ctx, half, d, libraryQuestions(p/2, 17_000)), half.Close(ctx))
		})
		if err != nil {
			t.Errorf("%v: %v", hostOf, err)
		}
	}
}

// Reductions give what they give on the host, where GroupReduces promises so much.
func TestReductionsByNCCLAgreeWithTheHost(t *testing.T) {
	devices := manyDevices(t)
	withoutStaging(t)
	const bytes = 40_000
	err := onNCCL(t, []int32{0, 1}, byNCCL, func(ctx context.Context, c *comm.Comm) error {
		for op := mem.Sum; op < mem.Custom; op++ {
			for typ := mem.NoType + 1; typ.Valid(); typ++ {
				floating := typ == mem.F16 || typ == mem.BF16 || typ == mem.F32 || typ == mem.F64
				if !mem.GroupReduces(op, typ) || floating && op != mem.Sum && op != mem.Prod {
					continue
				}
				if err := agreesWithTheHost(ctx, c, devices[c.Rank()], op, typ, bytes/typ.Size()); err != nil {
					return fmt.Errorf("%v of %v: %w", op, typ, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Where NCCL serves for some calls only, the others go the usual way, all in one order.
func TestNCCLAndTheUsualWaysMix(t *testing.T) {
	devices := manyDevices(t)
	cudaDevices(t)
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
		p := len(hostOf)
		for _, cfg := range []comm.Config{{}, {Tuning: inChunksFrom}, {Deterministic: true},
			{Tuning: "allreduce:0-:circulant"}} {
			cfg.CUDA, cfg.Logger = "nccl", quietly.Logger
			err := onNCCL(t, hostOf, cfg, func(ctx context.Context, c *comm.Comm) error {
				for i, q := range longQuestions(p, 8200, 11) {
					var space mem.Space = devices[c.Rank()]
					switch {
					case i%5 == 2 && c.Rank() == p-1:
						space = nil
					case i%7 == 3: // another than at first, or the same
						space = devices[(c.Rank()+1)%p]
					}
					if q.op == comm.Avg { // NCCL may divide before it adds, which rounds otherwise
						q.op = comm.Sum
					}
					if err := answerOn(ctx, c, space, []question{q}); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%v, %+v: %v", hostOf, cfg, err)
			}
		}
	}
}

// Counts that mean nothing away from the root are not read there.
func TestScattervWithNCCLReadsCountsAtTheRootOnly(t *testing.T) {
	devices := manyDevices(t)
	err := onNCCL(t, []int32{0, 1}, byNCCL, func(ctx context.Context, c *comm.Comm) error {
		const n = 9000
		d := devices[c.Rank()]
		part, err := d.Alloc(mem.I32, n)
		if err != nil {
			return err
		}
		defer d.Free(part)
		if c.Rank() != 0 {
			return c.Scatterv(ctx, 0, comm.Buffer{}, part, []int{}, nil)
		}
		all, err := d.Alloc(mem.I32, 2*n)
		if err != nil {
			return err
		}
		defer d.Free(all)
		return c.Scatterv(ctx, 0, all, part, []int{n, n}, nil)
	})
	if err != nil {
		t.Error(err)
	}
}

// Two ranks with one device, or what the library refuses on rank 0, are said once, and
// the usual ways serve.
func TestWithoutNCCLTheUsualWaysServe(t *testing.T) {
	devices := manyDevices(t)
	for name, how := range map[string]struct {
		share int // ranks to a device
		fail  string
	}{
		"ranks 0 and 1 (host ash) have one device: want one for each": {share: 2},
		"rank 0 (host ash): cuda:0: NCCL: ncclGetUniqueId: ncclSystemError (2): unhandled system error: the test wants it": {
			share: 1, fail: "ncclGetUniqueId:1=2"},
	} {
		t.Setenv("FAKECUDA_FAIL", how.fail)
		var output strings.Builder
		cfg := comm.Config{CUDA: "nccl", Logger: slog.New(slog.NewTextHandler(&locked{w: &output},
			&slog.HandlerOptions{Level: slog.LevelWarn}))}
		errs := overHosts(t, []int32{0, 0, 1}, cfg, func(ctx context.Context, c *comm.Comm) error {
			return answerOn(ctx, c, devices[c.Rank()/how.share], longQuestions(3, 8200))
		})
		if err := errors.Join(errs...); err != nil || strings.Count(output.String(), "do without NCCL") != 1 ||
			!strings.Contains(output.String(), name) {
			t.Errorf("%v; said: %s\nwant %q once", err, output.String(), name)
		}
	}
}

// locked is a strings.Builder for several goroutines.
type locked struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// longSums does allreduces until one fails, and returns its error.
func longSums(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
	b, err := d.Alloc(mem.F32, 20_000)
	if err != nil {
		return err
	}
	defer d.Free(b)
	for err == nil {
		err = c.Allreduce(ctx, b, b, comm.Sum)
	}
	return err
}

var errVictim = errors.New("the victim ends")

// hanging makes the n-th collective of each rank by NCCL hang, 0 for joining, and
// returns what waits until all of p ranks do.
func hanging(t *testing.T, n, p int) (all func()) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); writer.Close() })
	t.Setenv("FAKENCCL_HANG", fmt.Sprint(n))
	t.Setenv("FAKENCCL_TOLD", fmt.Sprint(writer.Fd()))
	return func() {
		if _, err := io.ReadFull(reader, make([]byte, p)); err != nil {
			t.Error(err)
		}
	}
}

// A rank that dies while others meet in NCCL, or wait in its collectives, revokes the
// communicator on all of them, which names it.
func TestDeathInNCCLRevokesTheCommunicator(t *testing.T) {
	devices := manyDevices(t)
	const victim = 1
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
		for n := range 3 {
			all := hanging(t, n, len(hostOf))
			var others sync.WaitGroup
			others.Add(len(hostOf) - 1)
			overHosts(t, hostOf, quietNCCL, func(ctx context.Context, c *comm.Comm) error {
				if c.Rank() == victim {
					own, end := context.WithCancel(ctx)
					go func() {
						defer end()
						all()
						inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
						others.Wait()
					}()
					longSums(own, c, devices[victim])
					return nil
				}
				defer others.Done()
				err := longSums(ctx, c, devices[c.Rank()])
				if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
					t.Errorf("%v, hanging in %d: rank %d: %v", hostOf, n, c.Rank(), problem)
				}
				return nil
			})
		}
	}
}

var quietNCCL = comm.Config{CUDA: "nccl", Logger: quietly.Logger}

// What NCCL answers, at once or later, ends the collective on all ranks with NCCL's
// words.
func TestErrorsOfNCCLAreReportedToAllRanks(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	devices := manyDevices(t)
	for says, set := range map[string][2]string{
		"allreduce: ncclCommGetAsyncError: ncclRemoteError (6): remote process exited": {"FAKENCCL_ASYNC", "2=6"},
		"allreduce: ncclAllReduce: ncclInternalError (3): internal error": {"FAKECUDA_FAIL",
			"ncclAllReduce:3=3"},
		"joining: ncclCommInitRankConfig: ncclUnhandledCudaError (1): unhandled cuda": {"FAKECUDA_FAIL",
			"ncclCommInitRankConfig:2=1"},
		"record of an event: cuEventRecord: CUDA_ERROR_LAUNCH_FAILED (719)": {"FAKECUDA_FAIL", "cuEventRecord:3=719"},
	} {
		t.Setenv(set[0], set[1])
		for r, err := range overHosts(t, []int32{0, 1, 1}, quietNCCL, func(ctx context.Context, c *comm.Comm) error {
			return longSums(ctx, c, devices[c.Rank()])
		}) {
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "cuda:") {
				t.Errorf("rank %d got %v, want %q", r, err, says)
			}
		}
		t.Setenv(set[0], "")
	}
}

// A context that ends while a rank waits for NCCL breaks the communicator for all; so
// does a member that has left.
func TestWaitsForNCCLEnd(t *testing.T) {
	devices := manyDevices(t)
	const impatient = 2
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
		all := hanging(t, 2, len(hostOf))
		overHosts(t, hostOf, quietNCCL, func(ctx context.Context, c *comm.Comm) error {
			own, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if c.Rank() == impatient {
				go func() {
					all()
					cancel(errVictim)
				}()
			}
			err := longSums(own, c, devices[c.Rank()])
			if c.Rank() == impatient {
				if !errors.Is(err, errVictim) {
					t.Errorf("%v: rank %d got %v, want its context's error", hostOf, c.Rank(), err)
				}
			} else if problem := wrongCause(err, impatient, "gave up in allreduce"); problem != nil {
				t.Errorf("%v: rank %d: %v", hostOf, c.Rank(), problem)
			}
			return nil
		})
	}
	if testing.Short() {
		return // to miss one who left takes seconds
	}
	for r, err := range overHosts(t, []int32{0, 1, 1}, quietNCCL, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == impatient {
			return leave(ctx, c)
		}
		return inside(c).AttendForever(ctx)
	}) {
		if problem := wrongCause(err, impatient, "has left, but a collective waits for it"); r != impatient &&
			problem != nil {
			t.Errorf("rank %d: %v", r, problem)
		}
	}
}

// Ranks that disagree, in the call or in the lengths of blocks that only two of them
// know, all get both calls.
func TestMismatchBeforeNCCLIsReportedToAllRanks(t *testing.T) {
	devices := manyDevices(t)
	const n, where = 20_000, 1
	counts := func(rank int) []int {
		k := []int{n, n, n}
		if rank == where {
			k[0]++
		}
		return k
	}
	for what, call := range map[string]func(ctx context.Context, c *comm.Comm, b, to comm.Buffer) error{
		"bcast": func(ctx context.Context, c *comm.Comm, b, to comm.Buffer) error {
			if c.Rank() == where {
				return c.Bcast(ctx, 0, b)
			}
			return c.Allreduce(ctx, b, b, comm.Sum)
		},
		"alltoallv": func(ctx context.Context, c *comm.Comm, b, to comm.Buffer) error {
			return c.Alltoallv(ctx, b, counts(c.Rank()), nil, to, []int{n, n, n}, nil)
		},
	} {
		for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
			overHosts(t, hostOf, quietNCCL, func(ctx context.Context, c *comm.Comm) error {
				d := devices[c.Rank()]
				b, err := d.Alloc(mem.F32, 3*n+1)
				if err != nil {
					return err
				}
				defer d.Free(b)
				to, err := d.Alloc(mem.F32, 3*n)
				if err != nil {
					return err
				}
				defer d.Free(to)
				if err := c.Allreduce(ctx, b, b, comm.Sum); err != nil {
					return err
				}
				err = call(ctx, c, b, to)
				if err == nil {
					err = comm.Barrier(ctx, c)
				}
				if problem := wrongMismatch(err, where, what); problem != nil {
					t.Errorf("%s, %v: rank %d: %v", what, hostOf, c.Rank(), problem)
				}
				return nil
			})
		}
	}
}
