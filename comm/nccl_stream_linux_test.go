package comm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/mem"
)

// Collectives by NCCL in the order of streams, which stop for them.

// streamsOnNCCL runs fn on ranks that have a stream each, and a communicator for which
// NCCL has met.
func streamsOnNCCL(t *testing.T, hostOf []int32, cfg comm.Config, fn func(ctx context.Context, s *streamer) error) error {
	t.Helper()
	devices := manyDevices(t)
	return onNCCL(t, hostOf, cfg, func(ctx context.Context, c *comm.Comm) error {
		s, err := newStreamer(c, devices[c.Rank()])
		if err != nil {
			return err
		}
		b := s.vector(20_000)
		if err := c.Allreduce(ctx, b, b, comm.Sum); err != nil {
			return err
		}
		return errors.Join(fn(ctx, s), s.close())
	})
}

// NCCL does its collectives between a stream's other works, and nothing goes through the
// host.
func TestNCCLWorksInTheOrderOfStreams(t *testing.T) {
	t.Setenv("FAKECUDA_DELAY", "300")
	for name, f := range streamForms(3) {
		err := streamsOnNCCL(t, []int32{0, 1, 1}, byNCCL, func(ctx context.Context, s *streamer) error {
			err := errors.Join(s.inOrder(ctx, f, 20_000), s.inOrder(ctx, f, 20_000))
			if n := s.c.Staged(); n > 0 {
				err = errors.Join(err, fmt.Errorf("%d bytes went through the host", n))
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where a rank's buffers are elsewhere, what is on streams goes the usual way, in their order.
func TestStreamsOnNCCLGoTheUsualWayWhereARankHasNoDeviceMemory(t *testing.T) {
	const elsewhere = 1
	for name, f := range streamForms(3) {
		err := streamsOnNCCL(t, []int32{0, 1, 1}, byNCCL, func(ctx context.Context, s *streamer) error {
			s.host = s.c.Rank() == elsewhere
			return errors.Join(s.inOrder(ctx, f, 20_000), s.inOrder(ctx, f, 30_000))
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All kinds of calls on one communicator keep their order: each doubles what the one before
// has left, on all ranks.
func TestCallsOnStreamsKeepTheirOrderAmongAllOthers(t *testing.T) {
	const n, calls = 10_000, 12
	for _, hostOf := range [][]int32{{0, 0}, {0, 1}} {
		err := streamsOnNCCL(t, hostOf, comm.Config{CUDA: "nccl", DeviceArena: smallArena}, func(ctx context.Context, s *streamer) error {
			x, host, out := s.vector(n), make([]int32, n), s.pinned(n)
			for i := range mem.Slice[float32](out) {
				mem.Slice[float32](out)[i] = 1
			}
			err := s.q.Copy(x, out)
			var rs []comm.Request
			for i := range calls {
				switch i % 6 {
				case 2: // of other memory, on another way
					rs = append(rs, s.c.AllreduceInit(comm.Of(host), comm.Of(host), comm.Sum).Start())
					fallthrough
				default:
					rs = append(rs, s.c.AllreduceOnStream(s.q, x, x, comm.Sum))
				case 4:
					err = errors.Join(err, comm.WaitAll(ctx, rs...), s.c.Allreduce(ctx, x, x, comm.Sum))
				}
			}
			err = errors.Join(err, s.q.Copy(out, x), s.q.Sync(), comm.WaitAll(ctx, rs...))
			for i, got := range mem.Slice[float32](out) {
				if got != 1<<calls {
					return errors.Join(err, fmt.Errorf("element %d is %v, want %d", i, got, 1<<calls))
				}
			}
			return err
		})
		if err != nil {
			t.Errorf("%v: %v", hostOf, err)
		}
	}
}

// A rank that dies ends what others have given NCCL, on streams that go on.
func TestStreamsGoOnWhenARankDiesInNCCL(t *testing.T) {
	const victim = 1
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
		all := hanging(t, 2, len(hostOf))
		var others sync.WaitGroup
		others.Add(len(hostOf) - 1)
		streamsOnNCCL(t, hostOf, quietNCCL, func(ctx context.Context, s *streamer) error {
			b := s.vector(20_000)
			rs := []comm.Request{s.c.AllreduceOnStream(s.q, b, b, comm.Sum), s.c.AllreduceOnStream(s.q, b, b, comm.Max)}
			if s.c.Rank() == victim {
				all()
				s.c.Launcher().(*boot.Member).Die("killed by signal 9")
				others.Wait()
				return nil
			}
			defer others.Done()
			if err := s.q.Sync(); err != nil {
				t.Errorf("%v: rank %d: the stream says %v", hostOf, s.c.Rank(), err)
			}
			for i, r := range rs {
				_, err := r.Wait(ctx)
				if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
					t.Errorf("%v: rank %d, collective %d: %v", hostOf, s.c.Rank(), i, problem)
				}
			}
			return nil
		})
	}
}

// What NCCL answers, at once or later, is told by the Requests of all ranks, and their
// streams go on.
func TestErrorsOfNCCLOnStreamsAreToldByRequests(t *testing.T) {
	for says, set := range map[string][2]string{
		"allreduce: ncclCommGetAsyncError: ncclRemoteError (6): remote process exited": {"FAKENCCL_ASYNC", "2=6"},
		"allreduce: ncclAllReduce: ncclInternalError (3): internal error":              {"FAKECUDA_FAIL", "ncclAllReduce:4=3"},
	} {
		t.Setenv(set[0], set[1])
		streamsOnNCCL(t, []int32{0, 1, 1}, quietNCCL, func(ctx context.Context, s *streamer) error {
			b := s.vector(20_000)
			r := s.c.AllreduceOnStream(s.q, b, b, comm.Sum)
			if err := s.q.Sync(); err != nil {
				t.Errorf("rank %d: the stream says %v", s.c.Rank(), err)
			}
			if _, err := r.Wait(ctx); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("rank %d got %v, want %q", s.c.Rank(), err, says)
			}
			return nil
		})
		t.Setenv(set[0], "")
	}
}

// Ranks that disagree all get both calls, and their streams go on.
func TestMismatchOnStreamsWithNCCLIsToldToAllRanks(t *testing.T) {
	const where = 1
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 1, 1}} {
		streamsOnNCCL(t, hostOf, quietNCCL, func(ctx context.Context, s *streamer) error {
			b := s.vector(20_000)
			r := s.c.AllreduceOnStream(s.q, b, b, comm.Sum)
			if s.c.Rank() == where {
				r = s.c.BcastOnStream(s.q, 0, b)
			}
			last := s.c.AllreduceOnStream(s.q, b, b, comm.Sum)
			if err := s.q.Sync(); err != nil {
				t.Errorf("%v: rank %d: the stream says %v", hostOf, s.c.Rank(), err)
			}
			_, err := r.Wait(ctx)
			if err == nil {
				_, err = last.Wait(ctx)
			}
			if problem := wrongMismatch(err, where, "allreduce"); problem != nil {
				t.Errorf("%v: rank %d: %v", hostOf, s.c.Rank(), problem)
			}
			return nil
		})
	}
}
