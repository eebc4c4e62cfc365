package measure

import "gompi/comm"

// Tags of the messages and of the acknowledgement that ends a window.
const (
	dataTag = 1
	ackTag  = 2
)

// messageOperations are the benchmarks of messages between pairs of ranks. All
// messages of a window share one buffer on each side, as in OSU's benchmarks: it
// is the transfer that is measured, not the memory.
func messageOperations() []operation {
	return []operation{
		{name: "latency", ranks: 2, blocks: firstTwo(1, 1), run: runLatency, parts: fromPeer, timed: firstOnly, trips: 2, volume: times(1), bus: times(1)},
		{name: "bw", ranks: 2, blocks: bothWays(firstTwo(1, 0), firstTwo(0, 1)), run: runBandwidth, parts: fromPeer, timed: firstOnly, window: true, volume: times(1), bus: times(1)},
		{name: "bibw", ranks: 2, blocks: firstTwo(1, 1), run: runBothWays, parts: fromPeer, timed: eitherOfTwo, window: true, volume: times(2), bus: times(1)},
		{name: "mbw_mr", ranks: 2, blocks: pairBlocks, run: runBandwidth, parts: fromPeer, timed: senders, window: true, volume: pairs, bus: times(1)},
	}
}

func firstTwo(send, recv int) func(rank, np int) (int, int) {
	return func(rank, _ int) (int, int) {
		if rank < 2 {
			return send, recv
		}
		return 0, 0
	}
}

// bothWays takes rank 0's blocks from one function and those of all others from
// another.
func bothWays(zero, others func(rank, np int) (int, int)) func(rank, np int) (int, int) {
	return func(rank, np int) (int, int) {
		if rank == 0 {
			return zero(rank, np)
		}
		return others(rank, np)
	}
}

// pairBlocks: the lower half of the ranks sends to the upper. With an odd number
// of ranks the last one has no partner.
func pairBlocks(rank, np int) (send, recv int) {
	half := np / 2
	switch {
	case rank < half:
		return 1, 0
	case rank < 2*half:
		return 0, 1
	}
	return 0, 0
}

func firstOnly(rank, _ int) bool   { return rank == 0 }
func eitherOfTwo(rank, _ int) bool { return rank < 2 }
func senders(rank, np int) bool    { return rank < np/2 }
func pairs(np int) float64         { return float64(np / 2) }

// peer returns the rank that k's rank exchanges messages with, -1 if none.
func (k *cell) peer() int {
	span := 1
	if k.op.name == "mbw_mr" {
		span = k.np / 2
	}
	switch {
	case k.rank < span:
		return k.rank + span
	case k.rank < 2*span:
		return k.rank - span
	}
	return -1
}

// runLatency is one round trip.
func runLatency(k *cell) error {
	peer := k.peer()
	if peer < 0 {
		return nil
	}
	if k.rank == 0 {
		if err := k.c.Send(k.ctx, peer, dataTag, k.send); err != nil {
			return err
		}
	}
	if _, err := k.c.Recv(k.ctx, peer, dataTag, k.recv); err != nil {
		return err
	}
	if k.rank == 0 {
		return nil
	}
	return k.c.Send(k.ctx, peer, dataTag, k.send)
}

// runBandwidth is a window of messages one way, and an empty one back.
func runBandwidth(k *cell) error {
	peer := k.peer()
	switch {
	case peer < 0:
		return nil
	case k.rank < peer:
		for i := range k.window {
			k.requests[i] = k.c.Isend(peer, dataTag, k.send)
		}
		if err := comm.WaitAll(k.ctx, k.requests[:k.window]...); err != nil {
			return err
		}
		_, err := k.c.Recv(k.ctx, peer, ackTag, comm.Of[byte](nil))
		return err
	}
	for i := range k.window {
		k.requests[i] = k.c.Irecv(peer, dataTag, k.recv)
	}
	if err := comm.WaitAll(k.ctx, k.requests[:k.window]...); err != nil {
		return err
	}
	return k.c.Send(k.ctx, peer, ackTag, comm.Of[byte](nil))
}

// runBothWays is a window each way at once. It needs no acknowledgement: the
// slower of the two ranks has received all.
func runBothWays(k *cell) error {
	peer := k.peer()
	if peer < 0 {
		return nil
	}
	for i := range k.window {
		k.requests[i] = k.c.Irecv(peer, dataTag, k.recv)
	}
	for i := range k.window {
		k.requests[k.window+i] = k.c.Isend(peer, dataTag, k.send)
	}
	return comm.WaitAll(k.ctx, k.requests[:2*k.window]...)
}

// fromPeer is what the partner sent.
func fromPeer(k *cell) ([]part, error) {
	if k.recv.Len() == 0 {
		return nil, nil
	}
	return []part{{k.recv, k.inputs.by[k.peer()], 0}}, nil
}
