package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
	"gompi/cudaops/cudatest"
	"gompi/internal/boot"
	"gompi/internal/core/payload"
	"gompi/internal/mem"
)

// Messages of device memory on several hosts.

// aroundChunks are numbers of int64 of which messages are staged, or go in chunks: two
// of them in this many that pinned memory serves several times.
var aroundChunks = []int{payload.StagingChunk/8 - 1, payload.StagingChunk / 8, payload.StagingChunk/8 + 1,
	payload.StagingChunk + 3}

// Long messages go between hosts, and inside them, in chunks, whichever rank has a device:
// never is so much of the host taken as they are long.
func TestLongMessagesOfCUDAMemoryGoInChunks(t *testing.T) {
	cudatest.NeedFake(t)
	devices := cudaDevices(t)
	for _, hostOf := range [][]int32{{0, 1}, {0, 0, 1}} {
		for who, space := range map[string]func(rank int) mem.Space{
			"all on devices": func(rank int) mem.Space { return devices[rank%2] },
			"one on the host": func(rank int) mem.Space {
				if rank == 1 {
					return mem.Host
				}
				return devices[0]
			},
		} {
			err := errors.Join(overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				for _, n := range aroundChunks {
					if err := passAround(ctx, c, space(c.Rank()), n); err != nil {
						return fmt.Errorf("%d elements: %w", n, err)
					}
				}
				if n := inside(c).Staged(); n > 9<<20 {
					return fmt.Errorf("%d bytes of host memory were taken: want sixteen chunks and a little", n)
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("%v, %s: %v", hostOf, who, err)
			}
		}
	}
}

// A device that fails in the midst of a message, and a rank that dies, end it on both
// sides.
func TestLongMessagesOfCUDAMemoryThatStopEndForBoth(t *testing.T) {
	cudatest.NeedFake(t)
	devices := leakyDevices(t)
	const n = 4 << 20
	exchange := func(ctx context.Context, c *comm.Comm, b, in comm.Buffer) error {
		_, err := c.Sendrecv(ctx, 1-c.Rank(), 1, b, 1-c.Rank(), 1, in)
		return err
	}
	run := func(fn func(ctx context.Context, c *comm.Comm, b, in comm.Buffer) error) []error {
		return overHosts(t, []int32{0, 1}, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			d := devices[c.Rank()]
			b, err := d.Alloc(mem.F32, n)
			if err != nil {
				return err
			}
			defer d.Free(b)
			in, err := d.Alloc(mem.F32, n)
			if err != nil {
				return err
			}
			defer d.Free(in)
			if err := exchange(ctx, c, b, in); err != nil {
				return fmt.Errorf("at first: %w", err)
			}
			return fn(ctx, c, b, in)
		})
	}
	for _, fail := range []string{"cuMemcpyAsync:1=719", "cuMemcpyAsync:40=719", "cuMemcpyAsync:90=719"} {
		t.Setenv("FAKECUDA_FAIL", "")
		errs := run(func(ctx context.Context, c *comm.Comm, b, in comm.Buffer) error {
			return failing(ctx, t, c, fail, func() error { return exchange(ctx, c, b, in) })
		})
		allFailed(t, fail, errs)
	}
	t.Setenv("FAKECUDA_FAIL", "")
	for victim := range 2 {
		run(func(ctx context.Context, c *comm.Comm, b, in comm.Buffer) error {
			if c.Rank() == victim {
				c.Isend(1-victim, 1, b) // of which nothing more is heard
				inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
				c.Close(ctx) // until then the message has its memory
				return nil
			}
			if problem := wrongCause(exchange(ctx, c, b, in), victim, "killed by signal 9"); problem != nil {
				t.Errorf("rank %d: %v", c.Rank(), problem)
			}
			return nil
		})
	}
}
