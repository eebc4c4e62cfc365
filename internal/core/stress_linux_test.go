package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/stress"
)

// lengths of the messages of the stress test, in bytes: within a line of the
// cache, a record, several records, and announced.
var lengths = []int{0, 1, 8, 9, 300, 5000, 32 << 10, 33_000, 64 << 10, 70_000, 300_000}

// Ranks send each other messages of all lengths by all ways at once, and stop
// wherever chance has it. Every message has to arrive whole and in its place.
func TestStressMessagesOverSharedMemory(t *testing.T) {
	end := stress.Until(t)
	for seed := uint64(0); seed == 0 || time.Now().Before(end); seed++ {
		for _, n := range []int{2, 3} {
			err := errors.Join(overMemory(t, n, func(ctx context.Context, c *comm.Comm) error {
				return exchange(ctx, c, seed)
			})...)
			if err != nil {
				t.Fatalf("%d ranks, seed %d: %v", n, seed, err)
			}
		}
	}
}

// exchange has every rank send to every other, and receive as many.
func exchange(ctx context.Context, c *comm.Comm, seed uint64) error {
	const messages = 300
	sent := make(chan error, 1)
	go func() { sent <- sendAll(ctx, c, seed, messages) }()
	err := receiveAll(ctx, c, seed, messages)
	return errors.Join(err, <-sent)
}

// plan returns what decides on the messages from one rank to another, the same
// for both.
func plan(seed uint64, from, to int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(from)<<8|uint64(to)))
}

// sendAll sends by Send, Ssend and Isend in turns, to all others at once.
func sendAll(ctx context.Context, c *comm.Comm, seed uint64, messages int) error {
	rng := rand.New(rand.NewPCG(seed, uint64(1000+c.Rank())))
	plans := make([]*rand.Rand, c.Size())
	for to := range plans {
		plans[to] = plan(seed, c.Rank(), to)
	}
	var open []comm.Request
	for i := range messages {
		for to, p := range plans {
			if to == c.Rank() {
				continue
			}
			data := content(c.Rank(), i, lengths[p.IntN(len(lengths))])
			stress.Pause(rng)
			var err error
			switch rng.IntN(4) {
			case 0:
				open = append(open, comm.Isend(c, to, i%3, data))
			case 1:
				if len(data) <= 8 { // the receiver may be waiting for another tag of ours
					err = comm.Send(ctx, c, to, i%3, data)
					break
				}
				fallthrough
			default:
				open = append(open, comm.Isend(c, to, i%3, data))
				if rng.IntN(8) == 0 {
					err = comm.WaitAll(ctx, open...)
					open = open[:0]
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return comm.WaitAll(ctx, open...)
}

// receiveAll receives from one rank after the other, by Recv, Irecv and Probe.
func receiveAll(ctx context.Context, c *comm.Comm, seed uint64, messages int) error {
	rng := rand.New(rand.NewPCG(seed, uint64(2000+c.Rank())))
	buf := make([]byte, lengths[len(lengths)-1])
	plans := make([]*rand.Rand, c.Size())
	for from := range plans {
		plans[from] = plan(seed, from, c.Rank())
	}
	for i := range messages {
		for from, p := range plans {
			if from == c.Rank() {
				continue
			}
			want := content(from, i, lengths[p.IntN(len(lengths))])
			stress.Pause(rng)
			st, err := receive(ctx, c, rng.IntN(3), from, i%3, buf)
			if err != nil {
				return err
			}
			if st.Bytes != len(want) || st.Source != from || st.Tag != i%3 {
				return fmt.Errorf("message %d from rank %d: %+v, want %d bytes with tag %d", i, from, st,
					len(want), i%3)
			}
			if err := equal(fmt.Sprintf("message %d from rank %d", i, from), buf[:st.Bytes], want); err != nil {
				return err
			}
		}
	}
	return nil
}

func receive(ctx context.Context, c *comm.Comm, how, from, tag int, buf []byte) (comm.Status, error) {
	switch how {
	case 0:
		return comm.Irecv(c, from, tag, buf).Wait(ctx)
	case 1:
		if _, err := c.Probe(ctx, from, tag); err != nil {
			return comm.Status{}, err
		}
	}
	return comm.Recv(ctx, c, from, tag, buf)
}

// content returns n bytes that tell a message from others.
func content(from, number, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from*31 + number*7 + i + i>>8)
	}
	return b
}
