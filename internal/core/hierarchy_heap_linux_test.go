package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/internal/seg"
)

// Vectors from Alloc, which the ranks of a host see of each other: all of them, or but
// for a host's, and in several chunks.
func TestAllocatedMemoryInAHierarchyAgreesWithTheReference(t *testing.T) {
	e := reals[float64]()
	for i, hostOf := range places {
		if testing.Short() && i != 2 {
			continue
		}
		err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			inside(c).Share([]int{32 << 10, math.MaxInt}[i%2])
			return allocated(ctx, c, e, 40_000, mixtures[i/2%2:][:1], comm.Sum, comm.Avg, comm.Max)
		})...)
		if err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

func TestChunksOfAllocatedMemoryInAHierarchyAgreeWithTheReference(t *testing.T) {
	const n = 180_000
	e := reals[float64]()
	for _, hostOf := range [][]int32{{0, 0, 1, 1}, {0, 1, 1, 1, 0}, {0, 0, 1}, {0, 0, 1, 1, 2, 2}} {
		for _, from := range []int{0, math.MaxInt} {
			err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
				inside(c).Share(from)
				memory, err := comm.Alloc[float64](ctx, c, 2*(n+4)+100)
				if err != nil {
					return err
				}
				for i, kind := range []string{"bcast", "reduce", "allreduce", "allreduce", "reduce", "bcast"} {
					q := question{kind: kind, ranks: c.Size(), n: n, root: i % c.Size(), inPlace: i%2 == 0}
					if reduces(kind) {
						q.op = comm.Avg
					}
					if err := answerAllocated(ctx, c, e, q, memory, i); err != nil {
						return err
					}
				}
				return comm.Free(ctx, c, memory)
			})...)
			if err != nil {
				t.Errorf("hosts %v, shares from %d: %v", hostOf, from, err)
			}
		}
	}
}

// What ranks of several hosts have from Alloc is given back, and a rank alone on its
// host has as much.
func TestAllocatedMemoryInAHierarchyIsGivenBack(t *testing.T) {
	for i, hostOf := range places[:4] {
		if testing.Short() && i%3 != 1 {
			continue
		}
		err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			for range 3 {
				if err := allocateEverywhere(ctx, c); err != nil {
					return err
				}
			}
			if err := comm.Barrier(ctx, c); err != nil { // all have left what was closed
				return err
			}
			if n := inside(c).Lent(); n != 0 {
				return fmt.Errorf("%v: %d allocations are left", c, n)
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

// Where one rank lacks memory no rank has any, on whatever host, and nothing is broken.
func TestMemoryThatOneHostLacksIsAnErrorOnAll(t *testing.T) {
	for _, hostOf := range [][]int32{{0, 0, 1, 1}, {0, 0, 1}, {1, 0, 0, 2}, {0, 0, 1, 1, 2, 2}} {
		const poor = 1
		hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == poor {
				inside(c).LimitMemory(seg.Limit{Left: 7 << 20, Of: 16 << 20, By: "a test"})
			}
			const want = "2 ranks want 4.0 MiB each, rank 1 finds 7.0 MiB"
			v, err := comm.Alloc[float32](ctx, c, 1<<20)
			if !errors.Is(err, comm.ErrMemory) || v != nil || !strings.Contains(err.Error(), want) {
				t.Errorf("hosts %v, rank %d: got %d elements and %v, want ErrMemory with %q", hostOf, c.Rank(),
					len(v), err, want)
			}
			if v, err = comm.Alloc[float32](ctx, c, 1<<40); !errors.Is(err, comm.ErrMemory) || v != nil {
				t.Errorf("hosts %v, rank %d: got %d elements and %v, want ErrMemory for too many", hostOf, c.Rank(),
					len(v), err)
			}
			if n := inside(c).Lent(); n != 0 {
				t.Errorf("hosts %v, rank %d: %d allocations are left", hostOf, c.Rank(), n)
			}
			if v, err = comm.Alloc[float32](ctx, c, 800_000); err == nil {
				err = comm.Allreduce(ctx, c, v, v, comm.Sum)
			}
			if err != nil {
				t.Errorf("hosts %v, rank %d: less than that: %v", hostOf, c.Rank(), err)
			}
			return nil
		})
	}
}

func TestDeathOnAllocatedMemoryInAHierarchyRevokesItOnAllOtherRanks(t *testing.T) {
	for i, kind := range []string{"bcast", "reduce", "allreduce", "alltoall"} {
		hostOf := places[i%2]
		for victim := range hostOf {
			if testing.Short() && victim != i {
				continue
			}
			q := question{kind: kind, ranks: len(hostOf), n: 180_000, root: i}
			hierarchically(t, hostOf, dyingOnAllocated(t, victim, q))
		}
	}
}
