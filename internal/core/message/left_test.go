package message_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
)

func TestRecvOfALongMessageWhoseSenderHasLeftFails(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 1 {
			ch.Isend(0, 1, mem.Bytes(make([]byte, 1<<20)), false)
			return ch.Send(ctx, 0, 2, mem.Buffer{}, false)
		}
		if _, err := ch.Recv(ctx, 1, 2, mem.Buffer{}); err != nil {
			return err
		}
		synctest.Wait() // rank 1 has left
		if _, err := ch.Recv(ctx, 1, 1, mem.Bytes(make([]byte, 1<<20))); !errors.Is(err, liveness.ErrLeft) {
			return fmt.Errorf("got %v, want ErrLeft", err)
		}
		return nil
	})
}

// When all others have left, a receive from anybody ends, and one from this rank itself does not.
func TestReceivesFromThisRankGoOnWhenAllOthersHaveLeft(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 1 {
			return ch.Send(ctx, 0, 1, mem.Buffer{}, false)
		}
		own, anySource := ch.Irecv(0, 2, mem.Buffer{}), ch.Irecv(message.Any, 3, mem.Buffer{})
		if _, err := ch.Recv(ctx, 1, 1, mem.Buffer{}); err != nil {
			return err
		}
		if _, _, err := e.Wait(ctx, anySource); !errors.Is(err, liveness.ErrLeft) {
			return fmt.Errorf("from anybody: got %v, want ErrLeft", err)
		}
		if err := ch.Send(ctx, 0, 2, mem.Buffer{}, false); err != nil {
			return err
		}
		if st, _, err := e.Wait(ctx, own); err != nil || st.Source != 0 {
			return fmt.Errorf("from this rank: got %v of rank %d, want it received from rank 0", err, st.Source)
		}
		return nil
	})
}

func TestLookingDoesNotDeafenOneWhoSleeps(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 1 {
			if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); err != nil {
				return err
			}
			return ch.Send(ctx, 0, 2, mem.Buffer{}, false)
		}
		got := make(chan error)
		go func() {
			_, err := ch.Recv(ctx, 1, 2, mem.Buffer{})
			got <- err
		}()
		synctest.Wait() // it sleeps
		e.Advance(true)
		if err := ch.Send(ctx, 1, 1, mem.Buffer{}, false); err != nil {
			return err
		}
		return <-got
	})
}

func TestCollectivesOfOneChannelDoNotHoldUpThoseOfAnother(t *testing.T) {
	const many, size = 40, 200 << 10 // twice the budget
	f := call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: size}
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		other := e.Open(2, nil)
		defer other.Close()
		one := func(ch *message.Channel) error {
			rd := round.Of(ch)
			if err := rd.Begin(ctx, &f, 0, false); err != nil {
				return err
			}
			if b := mem.Bytes(make([]byte, size)); ch.Rank() == 0 {
				rd.Isend(1, b)
			} else {
				rd.Irecv(0, b)
			}
			return rd.End(rd.Wait())
		}
		rounds := func() error {
			for range many {
				if err := one(other); err != nil {
					return err
				}
			}
			return nil
		}
		if ch.Rank() == 1 { // in another order than rank 0
			return errors.Join(one(ch), rounds())
		}
		background := make(chan error)
		go func() { background <- rounds() }()
		synctest.Wait() // as many as may have left
		return errors.Join(one(ch), <-background)
	})
}

func TestSeveralReceivesFromARankThatLeftUnseen(t *testing.T) {
	runConfig(t, 2, func(cfg *message.Config) {
		cfg.Left = func(rank world.Rank) bool { return rank == 1 }
	}, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 1 {
			return nil // nothing was exchanged, so nobody is told
		}
		var rs [3]message.Handle
		for i := range rs {
			rs[i] = ch.Irecv(1, i, mem.Buffer{})
		}
		for i := range rs {
			if err := wait(ctx, e, rs[i]); !errors.Is(err, liveness.ErrLeft) {
				return fmt.Errorf("receive %d: got %v, want ErrLeft", i, err)
			}
		}
		return nil
	})
}

// A collective that follows a look at what others have called waits as any other.
func TestWhatBeginsAfterAPartingDoesNotPart(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 1 {
			if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); !errors.Is(err, liveness.ErrRevoked) {
				return fmt.Errorf("got %v, want a revocation", err)
			}
			return nil
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		rd := round.Of(ch)
		if err := errors.Join(rd.Part(short),
			rd.Begin(short, &call.Fingerprint{Kind: calls.Barrier}, 0, false)); err != nil {
			return err
		}
		var word atomic.Uint64
		p := round.Port{Round: rd, Ranks: []int{0, 1}}
		if err := p.Await(&word, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the word has not come: got %v, want %v", err, context.DeadlineExceeded)
		}
		return nil
	})
}

// A message that a probe has taken cannot be had any more when its sender has closed the Channel: a
// receive of it that begins then fails, as one that has begun does.
func TestClaimOfALongMessageWhoseSenderHasClosedTheChannelFails(t *testing.T) {
	for _, before := range []bool{true, false} {
		run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			other := e.Open(2, nil)
			if ch.Rank() == 1 {
				other.Isend(0, 1, mem.Bytes(make([]byte, 1<<20)), false)
				if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); err != nil {
					return err
				}
				other.Close()
				if err := ch.Send(ctx, 0, 2, mem.Buffer{}, false); err != nil {
					return err
				}
				_, err := ch.Recv(ctx, 0, 3, mem.Buffer{})
				return err
			}
			defer other.Close()
			m, _, err := other.Probe(ctx, 1, 1, true, true)
			if err != nil {
				return err
			}
			if err := ch.Send(ctx, 1, 1, mem.Buffer{}, false); err != nil {
				return err
			}
			if _, err := ch.Recv(ctx, 1, 2, mem.Buffer{}); err != nil { // now it is closed
				return err
			}
			if before {
				if _, err := other.Recv(ctx, 1, 2, mem.Buffer{}); !errors.Is(err, liveness.ErrLeft) {
					return fmt.Errorf("another receive: got %v, want ErrLeft", err)
				}
			}
			if _, err := m.Claim(ctx, mem.Bytes(make([]byte, 1<<20))); !errors.Is(err, liveness.ErrLeft) {
				return fmt.Errorf("known to have left: %v: got %v, want ErrLeft", before, err)
			}
			return ch.Send(ctx, 1, 3, mem.Buffer{}, false)
		})
	}
}

// A program that probes in a loop, instead of waiting, hears that a rank has closed the Channel, or
// that all others have.
func TestAProbeThatDoesNotWaitReportsWhoHasClosedTheChannel(t *testing.T) {
	for _, src := range []int{1, message.Any} {
		run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			other := e.Open(2, nil)
			if ch.Rank() == 1 {
				other.Close()
				_, err := ch.Recv(ctx, 0, 0, mem.Buffer{})
				return err
			}
			defer other.Close()
			if err := probeInALoop(other, src); !errors.Is(err, liveness.ErrLeft) {
				return fmt.Errorf("from %d: got %v, want ErrLeft", src, err)
			}
			return ch.Send(ctx, 1, 0, mem.Buffer{}, false)
		})
	}
}
