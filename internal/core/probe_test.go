package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/internal/mem"
)

func TestProbeReturnsTheSizeAndLeavesTheMessage(t *testing.T) {
	for _, n := range messageSizes {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				return comm.Send(ctx, c, 1, 4, integers[int64]().vector(0, n))
			}
			st, err := c.Probe(ctx, comm.AnySource, comm.AnyTag)
			if err != nil {
				return err
			}
			if st.Source != 0 || st.Tag != 4 || st.Count() != n || st.Type != mem.I64 {
				return fmt.Errorf("%d elements: got status %+v", n, st)
			}
			if again, ok, err := c.Iprobe(0, 4); !ok || err != nil || again != st {
				return fmt.Errorf("Iprobe after Probe: %+v, %v, %v", again, ok, err)
			}
			got := make([]int64, st.Count())
			if _, err := comm.Recv(ctx, c, st.Source, st.Tag, got); err != nil {
				return err
			}
			return equal("received", got, integers[int64]().vector(0, n))
		})
	}
}

func TestIprobeAndImprobeDoNotWait(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if st, ok, err := c.Iprobe(1-c.Rank(), 3); ok || err != nil {
			return fmt.Errorf("Iprobe without a message: %+v, %v, %v", st, ok, err)
		}
		if m, err := c.Improbe(comm.AnySource, 3); m != nil || err != nil {
			return fmt.Errorf("Improbe without a message: %v, %v", m, err)
		}
		return comm.Barrier(ctx, c)
	})
}

func TestMessageOfMprobeIsItsOwnersAlone(t *testing.T) {
	for _, n := range messageSizes {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			e := integers[int64]()
			if c.Rank() == 0 {
				return errors.Join(
					comm.WaitAll(ctx, comm.Isend(c, 1, 4, e.vector(1, n)), comm.Isend(c, 1, 4, e.vector(2, n))),
					comm.Barrier(ctx, c))
			}
			first, err := c.Mprobe(ctx, 0, 4)
			if err != nil {
				return err
			}
			got := make([]int64, n)
			if _, err := comm.Recv(ctx, c, 0, 4, got); err != nil { // the second message
				return err
			}
			if err := equal("second", got, e.vector(2, n)); err != nil {
				return err
			}
			if st, err := first.Recv(ctx, comm.Of(got)); err != nil || st.Count() != n || first.Count() != n {
				return fmt.Errorf("%v, status %+v, message %+v", err, st, first.Status)
			}
			if err := equal("first", got, e.vector(1, n)); err != nil {
				return err
			}
			if _, err := first.Recv(ctx, comm.Of(got)); err == nil {
				return errors.New("one message could be received twice")
			}
			return comm.Barrier(ctx, c)
		})
	}
}

func TestImprobeTakesAMessageThatIsThere(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			return errors.Join(comm.Send(ctx, c, 1, 2, []int{5}), comm.Barrier(ctx, c), comm.Barrier(ctx, c))
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		m, err := c.Improbe(0, comm.AnyTag)
		if m == nil || err != nil {
			return fmt.Errorf("got %v, %v", m, err)
		}
		if _, ok, err := c.Iprobe(0, comm.AnyTag); ok || err != nil {
			return fmt.Errorf("the message can still be probed (%v)", err)
		}
		x := make([]int, 1)
		if _, err := m.Recv(ctx, comm.Of(x)); err != nil || x[0] != 5 {
			return fmt.Errorf("%v, %v", x, err)
		}
		return comm.Barrier(ctx, c)
	})
}

// Several goroutines that probe and receive each get whole messages of the size
// they were told.
func TestMprobeFromManyGoroutines(t *testing.T) {
	const workers, each = 4, 25
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			for i := range workers * each {
				if err := comm.Send(ctx, c, 1, 0, integers[int64]().vector(i, i)); err != nil {
					return err
				}
			}
			return nil
		}
		errs := make([]error, workers)
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				for range each {
					errs[w] = errors.Join(errs[w], receiveAny(ctx, c))
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

func receiveAny(ctx context.Context, c *comm.Comm) error {
	m, err := c.Mprobe(ctx, comm.AnySource, comm.AnyTag)
	if err != nil {
		return err
	}
	got := make([]int64, m.Count())
	if _, err := m.Recv(ctx, comm.Of(got)); err != nil {
		return err
	}
	return equal("message", got, integers[int64]().vector(len(got), len(got)))
}

func TestProbeThatIsGivenUpBreaksNothing(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		why := errors.New("had enough")
		short, cancel := context.WithCancelCause(ctx)
		go func() { cancel(why) }()
		if _, err := c.Probe(short, 1-c.Rank(), 0); !errors.Is(err, why) {
			return fmt.Errorf("Probe: got %v, want %v", err, why)
		}
		if _, err := c.Mprobe(short, comm.AnySource, 0); !errors.Is(err, why) {
			return fmt.Errorf("Mprobe: got %v, want %v", err, why)
		}
		return comm.Barrier(ctx, c)
	})
}

// A message that Mprobe has taken and no rank receives does no harm.
func TestUnclaimedMessageDoesNotKeepCloseFromEnding(t *testing.T) {
	for _, n := range messageSizes {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				comm.Isend(c, 1, 0, make([]int64, n))
				synctest.Wait() // the other has it, and has ended
				return nil
			}
			return second(c.Mprobe(ctx, 0, 0))
		})
	}
}
