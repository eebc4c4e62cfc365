//go:build !race

// The race detector allocates on its own.

package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/window"
	"gompi/internal/core/call"
	"gompi/internal/core/layout"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
)

// doorCalls are of two ranks.
var doorCalls [2]call.Call

// What a rank does over and over must not make work for the collector.
var steady = []struct {
	name string
	step func(ctx context.Context, c *comm.Comm, x, y []float32) error
}{
	{"Send and Recv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		if c.Rank() == 0 {
			return errors.Join(comm.Send(ctx, c, 1, 0, x), second(comm.Recv(ctx, c, 1, 0, y)))
		}
		return errors.Join(second(comm.Recv(ctx, c, 0, 0, y)), comm.Send(ctx, c, 0, 0, x))
	}},
	{"Sendrecv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return second(comm.Sendrecv(ctx, c, 1-c.Rank(), 0, x, 1-c.Rank(), 0, y))
	}},
	{"Irecv and Isend", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		r, s := comm.Irecv(c, 1-c.Rank(), 0, y), comm.Isend(c, 1-c.Rank(), 0, x)
		return errors.Join(second(r.Wait(ctx)), second(s.Wait(ctx)))
	}},
	{"a window and WaitAll", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		var rs [16]comm.Request
		for i := range rs {
			if i%2 == c.Rank() {
				rs[i] = comm.Irecv(c, 1-c.Rank(), 0, y)
			} else {
				rs[i] = comm.Isend(c, 1-c.Rank(), 0, x)
			}
		}
		return comm.WaitAll(ctx, rs[:]...)
	}},
	{"WaitAny", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		r, s := comm.Irecv(c, 1-c.Rank(), 0, y), comm.Isend(c, 1-c.Rank(), 0, x)
		_, _, err := comm.WaitAny(ctx, r, s)
		return errors.Join(err, comm.WaitAll(ctx, r, s))
	}},
	{"messages with ProcNull", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		r, s := comm.Irecv(c, comm.ProcNull, 0, y), comm.Isend(c, comm.ProcNull, 0, x)
		return errors.Join(comm.WaitAll(ctx, r, s),
			second(comm.Sendrecv(ctx, c, comm.ProcNull, 0, x, comm.ProcNull, 0, y)))
	}},
	{"Iallreduce", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return second(c.Iallreduce(comm.Of(x), comm.Of(y), comm.Sum).Wait(ctx))
	}},
	{"Allreduce", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Allreduce(ctx, c, x, y, comm.Sum)
	}},
	{"a Call of a face's own", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		o := &doorCalls[c.Rank()]
		*o = call.Call{}
		o.Allreduce(comm.Of(x), comm.Of(y), call.Op{Kind: comm.Sum})
		return errors.Join(inside(c).Do(ctx, o), second(inside(c).Start(o).Wait(ctx)))
	}},
	{"Barrier", func(ctx context.Context, c *comm.Comm, x, y []float32) error { return comm.Barrier(ctx, c) }},
	{"Bcast", func(ctx context.Context, c *comm.Comm, x, y []float32) error { return comm.Bcast(ctx, c, 0, x) }},
	{"Reduce", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Reduce(ctx, c, 0, x, y, comm.Sum)
	}},
	{"ReduceScatter", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.ReduceScatter(ctx, c, x, firstHalf(y), twoBlocks[len(x)], comm.Sum)
	}},
	{"ReduceScatterBlock", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.ReduceScatterBlock(ctx, c, x, firstHalf(y), comm.Sum)
	}},
	{"Allgather", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Allgather(ctx, c, firstHalf(x), y)
	}},
	{"Allgatherv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Allgatherv(ctx, c, firstHalf(x), y, twoBlocks[len(y)], nil)
	}},
	{"Gather", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Gather(ctx, c, 0, firstHalf(x), y)
	}},
	{"Gatherv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Gatherv(ctx, c, 0, firstHalf(x), y, twoBlocks[len(y)], nil)
	}},
	{"Scatter", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Scatter(ctx, c, 0, x, firstHalf(y))
	}},
	{"Scatterv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Scatterv(ctx, c, 0, x, firstHalf(y), twoBlocks[len(x)], nil)
	}},
	{"Alltoall", func(ctx context.Context, c *comm.Comm, x, y []float32) error { return comm.Alltoall(ctx, c, x, y) }},
	{"Alltoallv", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Alltoallv(ctx, c, x, twoBlocks[len(x)], nil, y, twoBlocks[len(y)], nil)
	}},
	{"Scan", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Scan(ctx, c, x, y, comm.Sum)
	}},
	{"Exscan", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		return comm.Exscan(ctx, c, x, y, comm.Sum)
	}},
	{"Ssend", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		if c.Rank() == 0 {
			return comm.Ssend(ctx, c, 1, 0, x)
		}
		return second(comm.Recv(ctx, c, 0, 0, y))
	}},
	{"Probe and Iprobe", func(ctx context.Context, c *comm.Comm, x, y []float32) error {
		if c.Rank() == 0 {
			return errors.Join(comm.Send(ctx, c, 1, 0, x), iprobe(c, 1), second(comm.Recv(ctx, c, 1, 0, y)))
		}
		return errors.Join(second(c.Probe(ctx, 0, 0)), second(comm.Recv(ctx, c, 0, 0, y)), comm.Send(ctx, c, 0, 0, x))
	}},
}

// steadyLengths are of the vectors; the last is sent on request.
var steadyLengths = []int{2, 4000, 70_000}

// twoBlocks are the counts of two equal blocks, by the length of both.
var twoBlocks = func() map[int][]int {
	m := map[int][]int{}
	for _, n := range steadyLengths {
		m[n] = []int{n / 2, n / 2}
	}
	return m
}()

func firstHalf(v []float32) []float32 { return v[:len(v)/2] }

// iprobe returns when there is a message from a rank.
func iprobe(c *comm.Comm, from int) error {
	for {
		if _, ok, err := c.Iprobe(from, 0); ok || err != nil {
			return err
		}
		runtime.Gosched()
	}
}

// perStep returns how many allocations the ranks make together in one step, to rank 0.
// It counts those of the whole process, and takes the best of some tries, or the first
// good one: what gompi itself allocates is there in each.
func perStep(ctx context.Context, c *comm.Comm, step func() error) (float64, error) {
	const warmUp, steps, tries = 100, 100, 6
	run := func(n int) error {
		for range n {
			if err := step(); err != nil {
				return err
			}
		}
		return comm.Barrier(ctx, c)
	}
	if err := run(warmUp); err != nil {
		return 0, err
	}
	least, good := math.Inf(1), []bool{false}
	for i := 0; i < tries && !good[0]; i++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := run(steps); err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/steps)
		good[0] = least <= tolerated
		if err := comm.Bcast(ctx, c, 0, good); err != nil {
			return 0, err
		}
	}
	return least, nil
}

// tolerated is what the runtime itself may allocate per step, all ranks together:
// a goroutine that goes to sleep on another processor than last time takes a new
// entry for the channel's queue, a collection empties the pools of package sync.
// How often depends on what else the machine does. An allocation of gompi's own
// is one in every step, or in every wait, on each rank: twice as much at least.
const tolerated = 0.5

// wantPerStep fails the test if the ranks make more than most allocations in one step. count is
// perStep, with what it needs.
func wantPerStep(t *testing.T, what string, most float64, on func(fn rankFunc) []error,
	count func(ctx context.Context, c *comm.Comm) (float64, error)) {
	t.Helper()
	var got float64
	err := errors.Join(on(func(ctx context.Context, c *comm.Comm) error {
		n, err := count(ctx, c)
		if c.Rank() == 0 {
			got = n
		}
		return err
	})...)
	if err != nil {
		t.Fatal(err)
	}
	if got > most {
		t.Errorf("%s: %.2f allocations per step, want at most %.1f", what, got, most)
	}
}

func TestStartAllocatesNothing(t *testing.T) {
	wantPerStep(t, "shm", tolerated, steadyNets(t)["shm"], func(ctx context.Context, c *comm.Comm) (float64, error) {
		x, y := make([]float32, 100), make([]float32, 100)
		ps := [...]*comm.Persistent{
			c.RecvInit(1-c.Rank(), 0, comm.Of(y)), c.SendInit(1-c.Rank(), 0, comm.Of(x)), c.BarrierInit(),
		}
		return perStep(ctx, c, func() error {
			var rs [len(ps)]comm.Request
			for i, p := range ps {
				rs[i] = p.Start()
			}
			return comm.WaitAll(ctx, rs[:]...)
		})
	})
}

// Who takes a message out of the queue gets it in memory of its own, and nothing else.
func TestMprobeAllocatesTheMessageAlone(t *testing.T) {
	wantPerStep(t, "shm", 1+tolerated, steadyNets(t)["shm"], func(ctx context.Context, c *comm.Comm) (float64, error) {
		x := make([]float32, 2)
		return perStep(ctx, c, func() error {
			if c.Rank() == 0 {
				return comm.Ssend(ctx, c, 1, 0, x)
			}
			m, err := c.Mprobe(ctx, 0, 0)
			if err != nil {
				return err
			}
			return second(m.Recv(ctx, comm.Of(x)))
		})
	})
}

// Operations on memory that is shared allocate nothing.
func TestWindowsInMemoryAllocateNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks share no memory here")
	}
	wantPerStep(t, "shm", tolerated, steadyNets(t)["shm"], func(ctx context.Context, c *comm.Comm) (float64, error) {
		w, _, err := window.Allocate[int64](ctx, c, 1000)
		if err != nil {
			return 0, err
		}
		if err := w.LockAll(ctx); err != nil {
			return 0, err
		}
		x, long, half := comm.Of(make([]int64, 1)), comm.Of(make([]int64, 1000)), comm.Of(make([]int64, 500))
		inside, element := insideWindow(w), layout.Run(8)
		column := rma.Target{Rank: 1, Layout: element.Times(500, 16)}
		a, err := perStep(ctx, c, func() error {
			return errors.Join(w.Put(1, 7, x), w.Get(1, 7, x), w.FetchAndOp(1, 7, x, x, comm.Sum),
				w.Accumulate(1, 0, long, comm.Max), w.Put(1, 0, long), w.Get(1, 0, long),
				inside.Put(column, half, nil), inside.Get(column, half, nil),
				inside.Accumulate(column, half, rma.Of(comm.Sum, mem.I64), nil), w.Flush(ctx, 1))
		})
		return a, errors.Join(err, w.UnlockAll(ctx), w.Free(ctx))
	})
}

func TestAlltoallwAllocatesNothing(t *testing.T) {
	for name, on := range steadyNets(t) {
		for _, n := range steadyLengths {
			what := fmt.Sprintf("%s, %d elements", name, n)
			wantPerStep(t, what, tolerated, on, func(ctx context.Context, c *comm.Comm) (float64, error) {
				x := make([]float32, n)
				if name == "heap" {
					if err := allocate(ctx, c, &x); err != nil {
						return 0, err
					}
				}
				send := []comm.Buffer{comm.Of(firstHalf(x)), comm.Of(x[n/2:])}
				recv := []comm.Buffer{comm.Of(make([]float32, n/2)), comm.Of(make([]float32, n/2))}
				return perStep(ctx, c, func() error { return c.Alltoallw(ctx, send, recv) })
			})
		}
	}
}

// allocate takes the place of v with memory from Alloc.
func allocate(ctx context.Context, c *comm.Comm, v *[]float32) (err error) {
	*v, err = comm.Alloc[float32](ctx, c, len(*v))
	return err
}

// steadyNets runs two ranks over different transports, "heap" for those with vectors from Alloc.
func steadyNets(t *testing.T) map[string]func(fn rankFunc) []error {
	return map[string]func(fn rankFunc) []error{
		"inproc": func(fn rankFunc) []error { return commtest.Ranks(t.Context(), 2, comm.Config{}, fn) },
		"tcp":    func(fn rankFunc) []error { return overTCP(t, 2, fn) },
		"shm":    func(fn rankFunc) []error { return overMemory(t, 2, fn) },
		"heap":   func(fn rankFunc) []error { return overMemory(t, 2, fn) },
	}
}

func TestShortMessagesOfLayoutsAllocateNothing(t *testing.T) {
	for name, on := range steadyNets(t) {
		for _, n := range []int{2, 1000, 16 << 10} {
			what := fmt.Sprintf("%s, %d elements", name, n)
			wantPerStep(t, what, tolerated, on, func(ctx context.Context, c *comm.Comm) (float64, error) {
				column := must(comm.Vector(n, 1, 3))
				x, y := lay(make([]float32, 3*n), column), lay(make([]float32, 3*n), column)
				peer := 1 - c.Rank()
				return perStep(ctx, c, func() error {
					r, s := c.Irecv(peer, 0, y), c.Isend(peer, 0, x)
					if err := errors.Join(second(r.Wait(ctx)), second(s.Wait(ctx))); err != nil {
						return err
					}
					if c.Rank() == 0 {
						return errors.Join(c.Send(ctx, 1, 0, x), second(c.Recv(ctx, 1, 0, y)))
					}
					return errors.Join(second(c.Recv(ctx, 0, 0, y)), c.Send(ctx, 0, 0, x))
				})
			})
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, on := range steadyNets(t) {
		for _, s := range steady {
			for _, n := range steadyLengths {
				if testing.Short() && n > 2 {
					continue
				}
				what := fmt.Sprintf("%s, %s of %d elements", name, s.name, n)
				wantPerStep(t, what, tolerated, on, func(ctx context.Context, c *comm.Comm) (float64, error) {
					x, y := make([]float32, n), make([]float32, n)
					if name == "heap" {
						if err := errors.Join(allocate(ctx, c, &x), allocate(ctx, c, &y)); err != nil {
							return 0, err
						}
					}
					return perStep(ctx, c, func() error { return s.step(ctx, c, x, y) })
				})
			}
		}
	}
}
