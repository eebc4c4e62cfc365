package core_test

import (
	"context"
	"testing"

	"gompi/comm"
)

func BenchmarkTCPWindow(b *testing.B) {
	b.ReportAllocs()
	run(b, 2, func(ctx context.Context, c *comm.Comm) error {
		const window = 64
		buf, ack := make([]byte, 8), make([]byte, 1)
		rs := make([]comm.Request, window)
		for range b.N/window + 1 {
			for i := range rs {
				if c.Rank() == 0 {
					rs[i] = comm.Isend(c, 1, 0, buf)
				} else {
					rs[i] = comm.Irecv(c, 0, 0, buf)
				}
			}
			if err := comm.WaitAll(ctx, rs...); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if _, err := comm.Recv(ctx, c, 1, 1, ack); err != nil {
					return err
				}
			} else if err := comm.Send(ctx, c, 0, 1, ack); err != nil {
				return err
			}
		}
		return nil
	})
}
