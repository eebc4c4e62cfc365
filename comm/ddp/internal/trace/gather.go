package trace

import (
	"context"
	"time"

	"gompi/comm"
)

// clockShift returns the difference of rank 0's clock from this rank's. Rank 0 asks each rank for
// its time several times, and takes the answer with the shortest round trip.
func clockShift(ctx context.Context, c *comm.Comm, clock func() time.Duration) (time.Duration, error) {
	const rounds, tag = 8, 0
	var ask, answer, shift [1]int64
	shifts := make([]int64, c.Size())
	for peer := 1; peer < c.Size(); peer++ {
		best := time.Duration(1 << 62)
		for range rounds {
			switch c.Rank() {
			case 0:
				begin := clock()
				if _, err := comm.Sendrecv(ctx, c, peer, tag, ask[:], peer, tag, answer[:]); err != nil {
					return 0, err
				}
				if took := clock() - begin; took < best {
					best, shifts[peer] = took, int64(begin+took/2)-answer[0]
				}
			case peer:
				if _, err := comm.Recv(ctx, c, 0, tag, ask[:]); err != nil {
					return 0, err
				}
				answer[0] = int64(clock())
				if err := comm.Send(ctx, c, 0, tag, answer[:]); err != nil {
					return 0, err
				}
			}
		}
	}
	err := comm.Scatter(ctx, c, 0, shifts, shift[:])
	return time.Duration(shift[0]), err
}

// gatherBytes returns every rank's data on rank 0.
func gatherBytes(ctx context.Context, c *comm.Comm, data []byte) ([][]byte, error) {
	counts := make([]int, c.Size())
	if err := comm.Allgather(ctx, c, []int{len(data)}, counts); err != nil {
		return nil, err
	}
	var flat []byte
	if c.Rank() == 0 {
		for _, n := range counts {
			flat = append(flat, make([]byte, n)...)
		}
	}
	if err := comm.Gatherv(ctx, c, 0, data, flat, counts, nil); err != nil || c.Rank() != 0 {
		return nil, err
	}
	var all [][]byte
	for _, n := range counts {
		all, flat = append(all, flat[:n]), flat[n:]
	}
	return all, nil
}
