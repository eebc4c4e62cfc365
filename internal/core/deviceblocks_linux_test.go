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
	"gompi/internal/stress"
)

// What the ranks of several hosts do with blocks that go straight to whom they are for,
// in the memory of devices.

// longBlock is elements of int32 that make a block of nine chunks, of which the last is
// short, and which is too long to be staged whole.
const longBlock = 1<<20 + 1001

// straightKinds are the collectives in question.
var straightKinds = []string{"gatherv", "scatterv", "alltoallv"}

func straightQuestions(p int) (qs []question) {
	for _, kind := range straightKinds {
		for _, inPlace := range []bool{false, true} {
			if !testing.Short() || inPlace {
				qs = append(qs, question{kind: kind, ranks: p, n: longBlock, root: p - 1, gaps: !inPlace,
					inPlace: inPlace})
			}
		}
	}
	return qs
}

// Long blocks go in chunks, however long those of other ranks are, whichever ranks have
// devices, and in place, too; never is a vector staged whole that is as long.
func TestBlocksOfCUDAMemoryGoStraightToTheirRanksInChunks(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for who, space := range map[string]func(rank int) mem.Space{
		"all on devices":  func(rank int) mem.Space { return devices[rank%2] },
		"one on a device": func(rank int) mem.Space { return []mem.Space{nil, nil, devices[1], nil}[rank] },
		"one on the host": func(rank int) mem.Space {
			return []mem.Space{devices[0], nil, devices[0], devices[0]}[rank]
		},
	} {
		for i, hostOf := range [][]int32{{0, 0, 1, 1}, {0, 1}, {0, 1, 1}} {
			if testing.Short() && i > 0 {
				continue
			}
			err := errors.Join(overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				if err := answerOn(ctx, c, space(c.Rank()), straightQuestions(len(hostOf))); err != nil {
					return err
				}
				if n := inside(c).LongestStaged(); n > 4<<20 {
					return fmt.Errorf("%d bytes were staged at once: want 4 MiB at most", n)
				}
				if n := inside(c).Staged(); n > 8<<20+8<<20 {
					return fmt.Errorf("%d bytes of host memory were taken: want sixteen chunks and two short vectors", n)
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("%v, %s: %v", hostOf, who, err)
			}
		}
	}
}

// The ranks that send and receive a block may disagree about its length as ever: both
// are told, whatever memory they have.
func TestBlocksOfCUDAMemoryOfDifferentLengthsAreAMismatch(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for _, d := range [][2]int{{longBlock, longBlock + 1}, {longBlock + 1, longBlock}, {longBlock, 3}, {3, longBlock},
		{0, longBlock}} {
		for _, on := range [][2]mem.Space{{devices[0], devices[1]}, {devices[0], mem.Host}, {mem.Host, devices[1]}} {
			overHosts(t, []int32{0, 1}, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				b, err := on[c.Rank()].Alloc(mem.I32, 2*longBlock)
				if err != nil {
					t.Error(err)
					return err
				}
				defer on[c.Rank()].Free(b)
				if c.Rank() == 1 {
					err = c.Gatherv(ctx, 0, b.Slice(0, d[0]), comm.Buffer{}, nil, nil)
				} else {
					err = c.Gatherv(ctx, 0, b.Slice(0, 0), b, []int{0, d[1]}, nil)
				}
				if err == nil {
					err = next(ctx, c)
				}
				var m *comm.MismatchError
				if !errors.As(err, &m) || m.Block.Bytes+m.PeerBlock.Bytes != 4*int64(d[0]+d[1]) {
					t.Errorf("%d elements sent and %d expected: rank %d: %v", d[0], d[1], c.Rank(), err)
				}
				return nil
			})
		}
	}
}

// A device that fails while blocks are on their way, and a rank that dies, end it on
// all ranks.
func TestBlocksOfCUDAMemoryThatStopEndItForAll(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	hostOf := []int32{0, 0, 1, 1}
	all := func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
		counts := slices.Repeat([]int{longBlock}, 4)
		own := b.Slice(c.Rank()*longBlock, (c.Rank()+1)*longBlock)
		err := c.Alltoallv(ctx, b, counts, nil, b, counts, nil)
		if err == nil {
			err = c.Gatherv(ctx, 1, own, b, counts, nil)
		}
		if err == nil {
			err = c.Scatterv(ctx, 2, b, own, counts, nil)
		}
		return err
	}
	run := func(fn func(ctx context.Context, c *comm.Comm, b comm.Buffer) error) []error {
		return overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			var d *cudaops.Device = devices[hostOf[c.Rank()]]
			b, err := d.Alloc(mem.I32, 4*longBlock)
			if err != nil {
				return err
			}
			defer d.Free(b)
			if err := all(ctx, c, b); err != nil {
				return fmt.Errorf("at first: %w", err)
			}
			return fn(ctx, c, b)
		})
	}
	for _, fail := range []string{"cuMemcpyAsync:1=719", "cuMemcpyAsync:60=719", "cuMemcpyAsync:250=719"} {
		t.Setenv("FAKECUDA_FAIL", "")
		errs := run(func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			return failing(ctx, t, c, fail, func() error { return all(ctx, c, b) })
		})
		allFailed(t, fail, errs)
	}
	t.Setenv("FAKECUDA_FAIL", "")
	for victim := range len(hostOf) {
		run(func(ctx context.Context, c *comm.Comm, b comm.Buffer) error {
			untilDeath(t, c, victim, func() error { return all(ctx, c, b) })
			return nil
		})
	}
}
