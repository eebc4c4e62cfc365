package core_test

import (
	"context"
	"testing"

	"gompi/comm"
)

func BenchmarkTCPPingPong(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(itoa(size), func(b *testing.B) {
			pingPong(b, size)
		})
	}
}

func pingPong(b *testing.B, size int) {
	b.ReportAllocs()
	run(b, 2, func(ctx context.Context, c *comm.Comm) error { return bounces(ctx, b, c, size) })
}

// bounces is b.N round trips between two ranks.
func bounces(ctx context.Context, b *testing.B, c *comm.Comm, size int) error {
	buf := make([]byte, size)
	for range 100 {
		if err := bounce(ctx, c, buf); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		b.ResetTimer()
	}
	for range b.N {
		if err := bounce(ctx, c, buf); err != nil {
			return err
		}
	}
	return nil
}

func bounce(ctx context.Context, c *comm.Comm, buf []byte) error {
	if c.Rank() == 0 {
		if err := comm.Send(ctx, c, 1, 0, buf); err != nil {
			return err
		}
		_, err := comm.Recv(ctx, c, 1, 0, buf)
		return err
	}
	if _, err := comm.Recv(ctx, c, 0, 0, buf); err != nil {
		return err
	}
	return comm.Send(ctx, c, 0, 0, buf)
}

func BenchmarkTCPAllreduce(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 64 << 10, 1 << 20, 4 << 20} {
		b.Run(itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			run(b, 2, func(ctx context.Context, c *comm.Comm) error {
				x, y := make([]float32, size/4), make([]float32, size/4)
				return repeats(b, c, func() error { return comm.Allreduce(ctx, c, x, y, comm.Sum) })
			})
		})
	}
}

// repeats makes b.N calls of a collective, after some that are not timed.
func repeats(b *testing.B, c *comm.Comm, call func() error) error {
	for range 10 {
		if err := call(); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		b.ResetTimer()
	}
	for range b.N {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}
