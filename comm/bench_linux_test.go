package comm_test

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
