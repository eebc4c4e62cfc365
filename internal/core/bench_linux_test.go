package core_test

import (
	"context"
	"errors"
	"testing"

	"gompi/comm"
)

// BenchmarkMemoryPingPong is two ranks of one host in one process: what a message
// costs without the launcher.
func BenchmarkMemoryPingPong(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			err := errors.Join(overMemory(b, 2, func(ctx context.Context, c *comm.Comm) error {
				return bounces(ctx, b, c, size)
			})...)
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkSharedMemoryCollectives is two ranks of one host in one process, in private memory.
func BenchmarkSharedMemoryCollectives(b *testing.B) {
	for _, kind := range []string{"allreduce", "bcast"} {
		for _, size := range []int{8, 64 << 10, 1 << 20, 4 << 20} {
			b.Run(kind+"/"+itoa(size), func(b *testing.B) {
				b.ReportAllocs()
				err := errors.Join(inRooms(b, 2, func(ctx context.Context, c *comm.Comm) error {
					x, y := make([]float32, size/4), make([]float32, size/4)
					return repeats(b, c, func() error {
						if kind == "bcast" {
							return comm.Bcast(ctx, c, 0, x)
						}
						return comm.Allreduce(ctx, c, x, y, comm.Sum)
					})
				})...)
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkInstructions is what short collectives of two ranks cost apart from the
// time in which a line of the cache crosses.
func BenchmarkInstructions(b *testing.B) {
	s, r := make([]float32, 2), make([]float32, 2)
	one := make([]float32, 1)
	for _, op := range []struct {
		name string
		call func(context.Context, *comm.Comm) error
	}{
		{"barrier", comm.Barrier},
		{"bcast", func(ctx context.Context, c *comm.Comm) error { return comm.Bcast(ctx, c, 0, s) }},
		{"reduce", func(ctx context.Context, c *comm.Comm) error { return comm.Reduce(ctx, c, 0, s, r, comm.Sum) }},
		{"allreduce", func(ctx context.Context, c *comm.Comm) error { return comm.Allreduce(ctx, c, s, r, comm.Sum) }},
		{"reducescatter", func(ctx context.Context, c *comm.Comm) error {
			return comm.ReduceScatterBlock(ctx, c, s, one, comm.Sum)
		}},
		{"allgather", func(ctx context.Context, c *comm.Comm) error { return comm.Allgather(ctx, c, one, r) }},
		{"alltoall", func(ctx context.Context, c *comm.Comm) error { return comm.Alltoall(ctx, c, s, r) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			err := errors.Join(overMemory(b, 2, func(ctx context.Context, c *comm.Comm) error {
				if c.Rank() != 0 {
					return nil
				}
				inside(c).Mirrored()
				b.ResetTimer()
				for range b.N {
					if err := op.call(ctx, c); err != nil {
						return err
					}
				}
				b.StopTimer()
				return nil
			})...)
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
