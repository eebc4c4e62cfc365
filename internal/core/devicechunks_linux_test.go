package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// Long collectives of device memory among ranks of one host, of which some may have host
// memory, in chunks.

// most is the bytes that the chunks of one collective at a time take of a rank.
const most = 8 << 20

// Every collective goes through a few chunks of pinned memory, whichever ranks have devices, in
// place, too, and in every order of operands. Those of which no rank knows all lengths are
// staged whole.
func TestCollectivesOfCUDAMemoryInHostsGoInChunks(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for _, p := range []int{2, 3, 4} {
		for who, space := range map[string]func(rank int) mem.Space{
			"all on devices": func(rank int) mem.Space { return devices[rank%2] },
			"one in host memory": func(rank int) mem.Space {
				return []mem.Space{devices[0], nil, devices[0], devices[0]}[rank]
			},
			"one on a device":   func(rank int) mem.Space { return []mem.Space{nil, devices[1], nil, nil}[rank] },
			"all on one device": func(int) mem.Space { return devices[1] },
		} {
			if p == 4 && who != "all on devices" && who != "one in host memory" {
				continue // two and three ranks have met the others
			}
			lengths := map[int][]int{2: {8200, piped / 2}, 3: {8200, 300_001}, 4: {300_001}}[p]
			if testing.Short() {
				if lengths = []int{100_001}; p == 4 || p == 3 && who != "one in host memory" {
					continue
				}
			}
			cfg := quietly
			cfg.Deterministic = p == 3
			err := errors.Join(onCUDA(t, p, cfg, func(ctx context.Context, c *comm.Comm) error {
				whole := func(q question) bool { return slices.Contains(straightKinds, q.kind) }
				qs := longQuestions(p, lengths...)
				if err := answerOn(ctx, c, space(c.Rank()), slices.DeleteFunc(slices.Clone(qs), whole)); err != nil {
					return err
				}
				if n := inside(c).Staged(); n > most {
					return fmt.Errorf("%d bytes of host memory were taken: want eight chunks at most", n)
				}
				return answerOn(ctx, c, space(c.Rank()),
					slices.DeleteFunc(qs, func(q question) bool { return !whole(q) }))
			})...)
			if err != nil {
				t.Errorf("np=%d, %s: %v", p, who, err)
			}
		}
	}
}

// What chunks give for every type is what host memory gives.
func TestChunksOfCUDAMemoryAgreeWithTheHost(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	const p, bytes = 3, 2<<20 + 100
	err := errors.Join(onCUDA(t, p, quietly, func(ctx context.Context, c *comm.Comm) error {
		for i, typ := range []comm.Type{mem.BF16, mem.F16, mem.F32, mem.F64, mem.C64, mem.U8} {
			op := []comm.Op{comm.Sum, comm.Avg, comm.Prod}[i%3]
			if err := agreesWithTheHost(ctx, c, devices[c.Rank()%2], op, typ, bytes/typ.Size()); err != nil {
				return fmt.Errorf("%v of %v: %w", op, typ, err)
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// Lengths that a sender and a receiver see differently are told as they are.
func TestLengthsOfBlocksOfCUDAMemoryInHostsThatDifferAreAMismatch(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	const expected, sent = 1_000_000, 1_000_001
	for kind, call := range map[string]func(ctx context.Context, c *comm.Comm, b comm.Buffer) error{
		"gatherv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			if c.Rank() == 0 {
				return c.Gatherv(ctx, 0, b.Slice(0, 0), b, []int{0, expected}, nil)
			}
			return c.Gatherv(ctx, 0, b.Slice(0, sent), comm.Buffer{}, nil, nil)
		},
		"scatterv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			if c.Rank() == 0 {
				return c.Scatterv(ctx, 1, comm.Buffer{}, b.Slice(0, expected), nil, nil)
			}
			return c.Scatterv(ctx, 1, b.Slice(0, sent), b.Slice(sent, sent), []int{sent, 0}, nil)
		},
		"alltoallv": func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			if c.Rank() == 0 {
				return c.Alltoallv(ctx, b.Slice(0, 0), []int{0, 0}, nil, b, []int{0, expected}, nil)
			}
			return c.Alltoallv(ctx, b, []int{sent, 0}, nil, b.Slice(0, 0), []int{0, 0}, nil)
		},
	} {
		errs := overMemoryWith(t, 2, quietly, func(ctx context.Context, c *comm.Comm) error {
			b, err := devices[c.Rank()].Alloc(mem.F32, sent)
			if err != nil {
				return err
			}
			defer devices[c.Rank()].Free(b)
			return call(ctx, c, b)
		})
		for r, err := range errs {
			var m *comm.MismatchError
			if !errors.As(err, &m) || m.Block.Bytes != 4*expected || m.PeerBlock.Bytes != 4*sent {
				t.Errorf("%s: rank %d: %v", kind, r, err)
			}
		}
	}
}

// A meter is a device that counts what is copied between it and host memory, and what of
// that it has pinned.
type meter struct {
	*cudaops.Device

	mu        sync.Mutex
	in, out   int // bytes
	waits     int
	longest   int // of one copy
	pinned    int // bytes
	elsewhere int // copies of host memory that is not pinned
	parts     []comm.Buffer
}

func (m *meter) inside(b comm.Buffer) comm.Buffer {
	if b.IsHost() {
		return b
	}
	return mem.Device(m.Device, b.Addr(), b.Type(), b.Len())
}

func (m *meter) Alloc(t comm.Type, n int) (comm.Buffer, error) {
	b, err := m.Device.Alloc(t, n)
	return mem.Device(m, b.Addr(), t, b.Len()), err
}

func (m *meter) Free(b comm.Buffer) { m.Device.Free(m.inside(b)) }

func (m *meter) AllocHost(t comm.Type, n int) (comm.Buffer, error) {
	b, err := m.Device.AllocHost(t, n)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pinned += b.Size()
	m.parts = append(m.parts, b)
	return b, err
}

func (m *meter) Copy(dst, src comm.Buffer) error {
	return m.CopyAll([]comm.Buffer{dst}, []comm.Buffer{src})
}

func (m *meter) CopyAll(dsts, srcs []comm.Buffer) error {
	for i := range dsts {
		m.note(dsts[i], srcs[i])
		dsts[i], srcs[i] = m.inside(dsts[i]), m.inside(srcs[i])
	}
	m.mu.Lock()
	m.waits++
	m.mu.Unlock()
	return m.Device.CopyAll(dsts, srcs)
}

func (m *meter) note(dst, src comm.Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	host := dst
	if dst.IsHost() {
		m.out += dst.Size()
	} else {
		host = src
		m.in += dst.Size()
	}
	m.longest = max(m.longest, dst.Size())
	if !slices.ContainsFunc(m.parts, func(b comm.Buffer) bool { return mem.Overlap(b, host.Raw()) }) {
		m.elsewhere++
	}
}

// count returns what has been copied since it was asked before, and how often a rank has
// waited for that.
func (m *meter) count() (out, in, waits int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, in, waits = m.out, m.in, m.waits
	m.out, m.in, m.waits = 0, 0, 0
	return out, in, waits
}

// Every byte comes from its device once and goes there once, a chunk at a time, through
// eight chunks of pinned memory.
func TestCUDAMemoryInHostsMovesOnceEachWay(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	const p, n = 3, 3 << 20 // 12 chunks of float32, 24 of as much in both vectors
	err := errors.Join(onCUDA(t, p, comm.Config{Tuning: usualChunks}, func(ctx context.Context, c *comm.Comm) error {
		m := &meter{Device: devices[c.Rank()%2]}
		b, err := m.Alloc(mem.F32, n)
		if err != nil {
			return err
		}
		defer m.Free(b)
		root := c.Rank() == 0
		for _, k := range []struct {
			name    string
			call    func() error
			out, in int // bytes
		}{
			{"allreduce", func() error { return c.Allreduce(ctx, b, b, comm.Sum) }, 4 * n, 4 * n},
			{"bcast", func() error { return c.Bcast(ctx, 0, b) }, pick(root, 4*n, 0), pick(root, 0, 4*n)},
			{"reduce", func() error { return c.Reduce(ctx, 0, b, b, comm.Max) }, 4 * n, pick(root, 4*n, 0)},
			{"reducescatter", func() error { return c.ReduceScatterBlock(ctx, b, b.Slice(0, n/p), comm.Sum) },
				4 * n, 4 * n / p},
			{"allgather", func() error { return c.Allgather(ctx, b.Slice(c.Rank()*n/p, (c.Rank()+1)*n/p), b) },
				4 * n / p, 4 * n},
			{"alltoall", func() error { return c.Alltoall(ctx, b, b) }, 4 * n, 4 * n},
		} {
			if err := k.call(); err != nil {
				return err
			}
			if out, in, waits := m.count(); out != k.out || in != k.in || waits > 2*25 {
				return fmt.Errorf("%s: %d bytes came from the device and %d went there, in %d waits: want %d and %d, and two of a chunk", k.name, out, in, waits, k.out, k.in)
			}
		}
		if m.longest > 1<<20 || m.pinned > most || m.elsewhere > 0 {
			return fmt.Errorf("copies of %d bytes, %d bytes pinned, %d copies of other memory: want 1 MiB, 8 MiB and none", m.longest, m.pinned, m.elsewhere)
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

func pick(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

// Communicators whose collectives run at the same time have chunks of their own.
func TestChunksOfSeveralCommunicatorsAtOnce(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	const p, comms = 2, 3
	err := errors.Join(onCUDA(t, p, quietly, func(ctx context.Context, c *comm.Comm) error {
		errs := make([]error, comms)
		var all sync.WaitGroup
		for i := range comms {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			all.Go(func() {
				for k := range 3 {
					errs[i] = errors.Join(errs[i], sums(ctx, d, devices[c.Rank()], piped/(k+i+1), comm.Sum, k == i))
				}
				errs[i] = errors.Join(errs[i], d.Close(ctx))
			})
		}
		all.Wait()
		if n := inside(c).Staged(); n > comms*most {
			return fmt.Errorf("%d bytes were pinned: want eight chunks for each of %d at most", n, comms)
		}
		return errors.Join(errs...)
	})...)
	if err != nil {
		t.Error(err)
	}
}

// A device that fails breaks its communicator with the driver's words, gives all chunks
// back, and leaves other communicators as they are.
func TestABrokenCommunicatorOfCUDAMemoryInHostsLeavesOthersWhole(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	const p = 3
	cfg := quietly
	cfg.Tuning = usualChunks
	err := errors.Join(onCUDA(t, p, cfg, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		on := devices[c.Rank()%2]
		if err := errors.Join(sums(ctx, d, on, piped, comm.Sum, true), comm.Barrier(ctx, c)); err != nil {
			return fmt.Errorf("at first: %w", err)
		}
		b, err := on.Alloc(mem.I32, piped)
		if err != nil {
			return err
		}
		defer on.Free(b)
		if c.Rank() == 0 {
			t.Setenv("FAKECUDA_FAIL", "cuMemcpyAsync:12=719")
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		for err == nil { // a rank whose copy back fails has given the others all they need of this one
			err = d.Allreduce(ctx, b, b, comm.Sum)
		}
		if !strings.Contains(err.Error(), "(719)") {
			return fmt.Errorf("rank %d: %v", c.Rank(), err)
		}
		if n := inside(c).Staged(); n != most {
			return fmt.Errorf("%d bytes can be lent again, want eight chunks", n)
		}
		d.Close(ctx) // tells again what was wrong
		return errors.Join(sums(ctx, c, on, piped, comm.Sum, false), comm.Barrier(ctx, c))
	})...)
	if err != nil {
		t.Error(err)
	}
}

// A rank that dies while chunks are on their way ends it for all.
func TestDeathDuringChunksOfCUDAMemoryRevokesTheCommunicator(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	for victim := range 3 {
		overMemoryWith(t, 3, quietly, func(ctx context.Context, c *comm.Comm) error {
			d := devices[c.Rank()%2]
			work := func() error { return sums(ctx, c, d, piped, comm.Sum, true) }
			if c.Rank() == victim { // it takes part once
				work()
			}
			untilDeath(t, c, victim, work)
			return nil
		})
	}
}
