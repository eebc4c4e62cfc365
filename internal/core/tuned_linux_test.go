package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"gompi/comm"
	"gompi/internal/core/network"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// halfTuned has rules for some collectives, and of bcast for short vectors alone.
const halfTuned = "barrier:dissemination;bcast:0-1k:chain;allreduce:circulant;gather:linear;alltoall:bruck;scan:chain"

// A sendCounter counts the messages of collectives that a transport sends.
type sendCounter struct {
	transport.Transport
	sent *atomic.Int64
}

// Capabilities are none: all messages go by Send.
func (sendCounter) Capabilities() transport.Capabilities { return transport.Capabilities{} }

func (s sendCounter) Send(peer world.Rank, h *transport.Header, b mem.Buffer, token uint64) bool {
	if h.Kind == transport.Coll {
		s.sent.Add(1)
	}
	return s.Transport.Send(peer, h, b, token)
}

// countSends makes sent count the messages of collectives of a rank with that Connection.
func countSends(f *network.Connection, sent *atomic.Int64) {
	connect := f.Connect
	f.Connect = func(sink transport.Sink, handleEvents func()) ([]transport.Transport, error) {
		all, err := connect(sink, handleEvents)
		for i := range all {
			all[i] = sendCounter{all[i], sent}
		}
		return all, err
	}
}

// A tuned allreduce sends what its algorithm sends, and nothing else sends a message: the
// others of the same communicator go through memory, and in place where vectors allow.
func TestTuningOneCollectiveLeavesTheOthersInMemory(t *testing.T) {
	const p, n = 4, 30_000
	var sent [p]atomic.Int64
	boots, s := withMemory(t, p)
	defer s.Close()
	cfg := comm.Config{Tuning: "allreduce:64-:circulant"}
	err := errors.Join(overFabrics(t, boots, cfg, func(rank int, f *network.Connection) { countSends(f, &sent[rank]) },
		func(ctx context.Context, c *comm.Comm) error {
			x, err := comm.Alloc[int64](ctx, c, n)
			if err != nil {
				return err
			}
			sends := func(what string, want int64, call func() error) error {
				before := sent[c.Rank()].Load()
				err := call()
				if got := sent[c.Rank()].Load() - before; err == nil && got != want {
					err = fmt.Errorf("%s: %d messages, want %d", what, got, want)
				}
				return err
			}
			small := make([]int64, 8)
			each := int64(4 + c.Rank()%2) // an odd rank sends a run of blocks in two messages: it passes the last rank
			if err := errors.Join(
				sends("barrier", 0, func() error { return comm.Barrier(ctx, c) }),
				sends("short allreduce", 0, func() error {
					return comm.Allreduce(ctx, c, small[:7], small[:7], comm.Sum)
				}),
				sends("allreduce", each, func() error { return comm.Allreduce(ctx, c, small, small, comm.Sum) }),
				sends("iallreduce", each, func() error {
					_, err := c.Iallreduce(comm.Of(small), comm.Of(small), comm.Sum).Wait(ctx)
					return err
				}),
				sends("persistent allreduce", each, func() error {
					_, err := c.AllreduceInit(comm.Of(small), comm.Of(small), comm.Sum).Start().Wait(ctx)
					return err
				}),
				// The circulant pattern keeps no order of operands: so it is not tuned.
				sends("allreduce with a function", 0, func() error {
					return comm.AllreduceFunc(ctx, c, small, small, func(acc, in []int64) {})
				}),
				sends("allgather", 0, func() error { return comm.Allgather(ctx, c, small, make([]int64, 8*p)) }),
			); err != nil {
				return err
			}
			ringed := inside(c).Ringed()
			if err := sends("bcast", 0, func() error { return comm.Bcast(ctx, c, 0, x) }); err != nil {
				return err
			}
			if copied := inside(c).Ringed() - ringed; copied >= 8*n {
				return fmt.Errorf("bcast of memory from Alloc: %d bytes went around rings, want it in place", copied)
			}
			return comm.Free(ctx, c, x)
		})...)
	if err != nil {
		t.Error(err)
	}
}

// tunedWays run ranks with a tuning: on one host, on two, and apart.
func tunedWays(p int, tuning string) map[string]func(t testing.TB, fn rankFunc) []error {
	cfg := comm.Config{Tuning: tuning}
	hostOf := make([]int32, p)
	for r := range hostOf {
		hostOf[r] = int32(2 * r / p)
	}
	return map[string]func(t testing.TB, fn rankFunc) []error{
		"memory": func(t testing.TB, fn rankFunc) []error {
			return overMemoryWith(t, p, cfg, func(ctx context.Context, c *comm.Comm) error {
				if !inside(c).SharesMemory() {
					return errors.New("there is no shared memory")
				}
				return fn(ctx, c)
			})
		},
		"hosts": func(t testing.TB, fn rankFunc) []error {
			return overHosts(t, hostOf, cfg, func(ctx context.Context, c *comm.Comm) error {
				if !inside(c).IsHierarchical() {
					return errors.New("there is no hierarchy")
				}
				return fn(ctx, c)
			})
		},
		"tcp": func(t testing.TB, fn rankFunc) []error { return overTCPWith(t, p, cfg, fn) },
	}
}

// Tuned calls and others on one communicator, in any order and spelling, on memory from
// Alloc and elsewhere, give what they should.
func TestTunedAndOtherCollectivesMix(t *testing.T) {
	e := reals[float64]()
	const most, calls = 9_000, 150
	for _, p := range []int{3, 4} {
		for name, run := range tunedWays(p, halfTuned) {
			err := errors.Join(run(t, func(ctx context.Context, c *comm.Comm) error {
				memory, err := comm.Alloc[float64](ctx, c, 2*(most+4)*p+100)
				if err != nil {
					return err
				}
				draw := rand.New(rand.NewPCG(uint64(p), 4)) // alike on all ranks
				for i := range calls {
					q := question{kind: everyKind[draw.IntN(len(everyKind))], ranks: p,
						n:    [...]int{0, 1, 100, 1000, most}[draw.IntN(5)],
						root: draw.IntN(p), inPlace: draw.IntN(2) == 0, gaps: draw.IntN(2) == 0}
					if reduces(q.kind) {
						q.op = []comm.Op{comm.Sum, comm.Max, comm.Avg}[draw.IntN(3)]
					}
					on := memory
					if draw.IntN(2) == 0 {
						on = nil
					}
					if err := answerAllocated(ctx, c, e, q, on, i+c.Rank()); err != nil {
						return err
					}
					if i%40 == 0 {
						if err := composeEverywhere(ctx, c, 1+draw.IntN(2000)); err != nil {
							return err
						}
					}
				}
				return comm.Free(ctx, c, memory)
			})...)
			if err != nil {
				t.Errorf("np=%d, %s: %v", p, name, err)
			}
		}
	}
}

// The same with device memory, some of it.
func TestTunedAndOtherCollectivesOfCUDAMemoryMix(t *testing.T) {
	devices := cudaDevices(t)
	for _, hostOf := range [][]int32{{0, 0, 0}, {0, 0, 1, 1}} {
		p := len(hostOf)
		cfg := comm.Config{Tuning: halfTuned + ";" + inChunksFrom}
		err := onNCCL(t, hostOf, cfg, func(ctx context.Context, c *comm.Comm) error {
			qs := append(longQuestions(p, 8200, 11), question{kind: "allreduce", ranks: p, n: 1_100_000, op: comm.Max},
				question{kind: "bcast", ranks: p, n: 1_100_000})
			for i, q := range qs {
				var space mem.Space = devices[c.Rank()%len(devices)]
				if i%4 == 0 && c.Rank() == p-1 {
					space = nil
				}
				if err := answerOn(ctx, c, space, []question{q}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

// Of two ranks one may wait for a message and the other for memory, in the midst of long
// vectors: each hears of what the other has called.
func TestTunedAgainstOtherCollectivesIsAMismatchOnAllRanks(t *testing.T) {
	ways := tunedWays(4, "allreduce:circulant")
	for _, name := range []string{"memory", "hosts"} {
		t.Run(name, func(t *testing.T) {
			disagreeInMemory(t, func(even, odd try, n int) bool {
				return n > 4 && (even.name == "allreduce" || odd.name == "allreduce")
			}, ways[name])
		})
	}
}

// One collective may be tuned on one rank and not on another if they disagree about its
// length.
func TestLengthsOnEitherSideOfARuleAreAMismatch(t *testing.T) {
	bcast := func(n int) try {
		return try{"bcast", func(ctx context.Context, c *comm.Comm, _ int) error {
			return comm.Bcast(ctx, c, 0, make([]float32, n))
		}}
	}
	for name, run := range tunedWays(4, halfTuned) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for where := range 4 {
				run(t, disagreeing(t, where, 0, bcast(255), bcast(256)))
				run(t, disagreeing(t, where, 0, bcast(256), bcast(255)))
			}
		})
	}
}

func TestLastCallsThatDifferWhereSomeAreTunedAreAMismatch(t *testing.T) {
	for _, p := range []int{2, 4} {
		for name, run := range tunedWays(p, strings.TrimPrefix(halfTuned, "barrier:dissemination;")) {
			if p == 2 && name == "hosts" { // two hosts of one rank have no hierarchy
				continue
			}
			t.Run(fmt.Sprint(name, " ", p), func(t *testing.T) { disagreeAtLast(t, run) })
		}
	}
}
