package measure

import (
	"fmt"
	"time"

	"gompi/comm"
)

// Tags of the messages and of the acknowledgement that ends a window.
const (
	dataTag = 1
	ackTag  = 2
)

// messageOperations are the benchmarks of messages between pairs of ranks. All messages of a window
// share one buffer on each side, as in OSU's benchmarks: they measure the transfer, not the memory.
func messageOperations() []operation {
	return []operation{
		{name: "latency", ranks: 2, blocks: bothWays, run: runLatency, parts: fromPeer, timed: firstOnly, trips: 2,
			volume: times(1), bus: times(1)},
		{name: "irecv", ranks: 2, blocks: bothWays, run: runIrecv, parts: fromPeer, timed: firstOnly, trips: 2,
			volume: times(1), bus: times(1)},
		{name: "vector", ranks: 2, strided: true, blocks: bothWays, run: runLatency, parts: fromPeer, timed: firstOnly,
			trips: 2, volume: times(1), bus: times(1)},
		{name: "sendrecv", ranks: 2, blocks: bothWays, run: runSendrecv, parts: fromPeer, volume: times(1),
			bus: times(1)},
		{name: "iprobe", ranks: 2, noData: true, blocks: each(0, 0), run: runIprobe, timed: firstOnly, volume: times(0),
			bus: times(0)},
		{name: "iprobe_found", ranks: 2, noData: true, blocks: each(0, 0), begin: sendToProbe, run: runIprobeFound,
			end: recvProbed, timed: firstOnly, volume: times(0), bus: times(0)},
		{name: "iprobe_recv", ranks: 2, blocks: bothWays, run: runIprobeRecv, parts: fromPeer, timed: firstOnly,
			trips: 2, volume: times(1), bus: times(1)},
		{name: "gap1ms", ranks: 2, blocks: oneWay, before: computeFor(time.Millisecond), run: runOneWay,
			parts: fromPeer, timed: firstOnly, volume: times(1), bus: times(1)},
		{name: "gap10ms", ranks: 2, blocks: oneWay, before: computeFor(10 * time.Millisecond), run: runOneWay,
			parts: fromPeer, timed: firstOnly, volume: times(1), bus: times(1)},
		{name: "halo", ranks: 2, blocks: bothWays, begin: calibrate, run: runHalo, parts: fromPeer, timed: firstOnly,
			volume: times(1), bus: times(1)},
		{name: "bw", ranks: 2, blocks: oneWay, run: runBandwidth, parts: fromPeer, timed: firstOnly, window: true,
			volume: times(1), bus: times(1)},
	}
}

// bothWays: the first two ranks send and receive. oneWay: rank 0 sends to rank 1.
func bothWays(rank, _ int) (send, recv int) {
	if rank < 2 {
		return 1, 1
	}
	return 0, 0
}

func oneWay(rank, _ int) (send, recv int) {
	switch rank {
	case 0:
		return 1, 0
	case 1:
		return 0, 1
	}
	return 0, 0
}

func firstOnly(rank, _ int) bool { return rank == 0 }

// peer returns the peer of k's rank, or -1.
func (k *cell) peer() int {
	if k.rank > 1 {
		return -1
	}
	return 1 - k.rank
}

// runLatency is one round trip.
func runLatency(k *cell) error {
	return k.roundTrip(func(peer int) error {
		_, err := k.c.Recv(k.ctx, peer, dataTag, k.recv)
		return err
	})
}

// runIrecv is one round trip in which each rank receives by Irecv and Wait.
func runIrecv(k *cell) error {
	return k.roundTrip(func(peer int) error {
		_, err := k.c.Irecv(peer, dataTag, k.recv).Wait(k.ctx)
		return err
	})
}

// runSendrecv is a message each way, at the same time.
func runSendrecv(k *cell) error {
	peer := k.peer()
	if peer < 0 {
		return nil
	}
	_, err := k.c.Sendrecv(k.ctx, peer, dataTag, k.send, peer, dataTag, k.recv)
	return err
}

func (k *cell) roundTrip(recv func(peer int) error) error {
	peer := k.peer()
	if peer < 0 {
		return nil
	}
	if k.rank == 0 {
		if err := k.c.Send(k.ctx, peer, dataTag, k.send); err != nil {
			return err
		}
	}
	if err := recv(peer); err != nil || k.rank == 0 {
		return err
	}
	return k.c.Send(k.ctx, peer, dataTag, k.send)
}

// runIprobe probes for a message that no rank sends.
func runIprobe(k *cell) error { return k.probe(false) }

// runIprobeFound probes for a message that has arrived, and leaves it.
func runIprobeFound(k *cell) error { return k.probe(true) }

func (k *cell) probe(want bool) error {
	if k.rank != 0 {
		return nil
	}
	_, found, err := k.c.Iprobe(1, dataTag)
	if err == nil && found != want {
		err = fmt.Errorf("%s: a message was found: %v, want %v", k.op.name, found, want)
	}
	return err
}

// sendToProbe sends an empty message to rank 0, which recvProbed receives.
func sendToProbe(k *cell) error {
	switch k.rank {
	case 0:
		_, err := k.c.Probe(k.ctx, 1, dataTag)
		return err
	case 1:
		return k.c.Send(k.ctx, 0, dataTag, comm.Of[byte](nil))
	}
	return nil
}

func recvProbed(k *cell) error {
	if k.rank != 0 {
		return nil
	}
	_, err := k.c.Recv(k.ctx, 1, dataTag, comm.Of[byte](nil))
	return err
}

// runIprobeRecv is one round trip in which each rank calls Iprobe until the message arrives.
func runIprobeRecv(k *cell) error {
	return k.roundTrip(func(peer int) error {
		for {
			if _, found, err := k.c.Iprobe(peer, dataTag); err != nil {
				return err
			} else if found {
				break
			}
		}
		_, err := k.c.Recv(k.ctx, peer, dataTag, k.recv)
		return err
	})
}

// runOneWay is a message one way. The sender's call is timed.
func runOneWay(k *cell) error {
	switch k.rank {
	case 0:
		return k.c.Send(k.ctx, 1, dataTag, k.send)
	case 1:
		_, err := k.c.Recv(k.ctx, 0, dataTag, k.recv)
		return err
	}
	return nil
}

// computeFor returns a function that keeps this rank's processor busy, without a call of comm.
func computeFor(d time.Duration) func() {
	return func() {
		for begun := time.Now(); time.Since(begun) < d; {
		}
	}
}

// runHalo computes for about haloComputes, then exchanges a block: the cost of a call for a program
// that also computes.
func runHalo(k *cell) error {
	peer := k.peer()
	if peer < 0 {
		return nil
	}
	k.work = compute(k.work, k.steps)
	r := k.c.Irecv(peer, dataTag, k.recv)
	if err := k.c.Send(k.ctx, peer, dataTag, k.send); err != nil {
		return err
	}
	_, err := r.Wait(k.ctx)
	return err
}

// haloComputes is the duration of halo's computation.
const haloComputes = 50 * time.Microsecond

// calibrate sets the number of steps of compute that take haloComputes without interruption.
func calibrate(k *cell) error {
	const some = 10_000
	fastest := time.Hour
	for range 20 {
		start := time.Now()
		k.work = compute(k.work, some)
		fastest = min(fastest, time.Since(start))
	}
	k.steps = int(some * haloComputes / max(fastest, 1))
	return nil
}

// compute does some arithmetic in which each step needs the result of the last.
func compute(x float64, steps int) float64 {
	for range steps {
		x = x*0.9999999 + 1e-7
	}
	return x
}

// runBandwidth is a window of messages one way, and an empty message back.
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

// fromPeer is the peer's data.
func fromPeer(k *cell) ([]part, error) {
	if k.recv.Len() == 0 {
		return nil, nil
	}
	return []part{{k.recv, k.inputs.by[k.peer()], 0}}, nil
}
