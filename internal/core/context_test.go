package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/internal/core"
)

var errEnough = errors.New("had enough")

// soon returns a context that ends with errEnough after a second of the bubble's
// clock, when everybody sleeps.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, time.Second, errEnough)
}

// asked returns a context whose check fails with errEnough when it is first asked.
func asked(ctx context.Context) (context.Context, context.CancelFunc) {
	return core.WithCheck(ctx, func(time.Duration) (time.Duration, error) { return 0, errEnough }), func() {}
}

// A rank whose context ends in a collective gets the cause, the others hear who
// gave up, and all get the same from later calls.
func TestContextThatEndsInACollectiveBreaksIt(t *testing.T) {
	for _, kind := range everyKind {
		for _, p := range []int{2, 5} {
			for _, n := range []int{10, 40_000} {
				if testing.Short() && n > 10 && kind != "allreduce" {
					continue
				}
				giveUpIn(t, question{kind: kind, ranks: p, n: n, root: 0, gaps: true}, soon)
			}
			giveUpIn(t, question{kind: kind, ranks: p, n: 10, root: 0, gaps: true}, asked)
		}
	}
}

func giveUpIn(t *testing.T, q question, ends func(context.Context) (context.Context, context.CancelFunc)) {
	t.Helper()
	if reduces(q.kind) {
		q.op = comm.Sum
	}
	const quitter = 1
	late := 0 // never comes, so that all wait
	if q.ranks > 2 {
		late = q.ranks - 1
	}
	outcomes(t, q.ranks, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == late { // busy with something else, until it hears of it
			if problem := wrongCause(second(comm.Recv(ctx, c, 0, 99, []int{})), quitter,
				errEnough.Error()); problem != nil {
				t.Errorf("%v: rank %d, outside: %v", q, late, problem)
			}
			return nil
		}
		on := ctx
		if c.Rank() == quitter {
			short, cancel := ends(ctx)
			defer cancel()
			on = short
		}
		err := answerAll(on, c, integers[int64](), []question{q})
		if err == nil { // the part of this rank was done
			err = comm.Barrier(on, c)
		}
		switch later := comm.Barrier(ctx, c); {
		case c.Rank() == quitter && !errors.Is(err, errEnough):
			t.Errorf("%v: rank %d, which gave up: got %v, want its cause", q, quitter, err)
		case c.Rank() != quitter && wrongCause(err, quitter, errEnough.Error()) != nil:
			t.Errorf("%v: rank %d: %v", q, c.Rank(), wrongCause(err, quitter, errEnough.Error()))
		case wrongCause(later, quitter, errEnough.Error()) != nil:
			t.Errorf("%v: rank %d, later call: %v", q, c.Rank(), wrongCause(later, quitter))
		}
		return nil
	})
}

func TestRecvThatIsGivenUpBreaksNothing(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for _, ends := range []func(context.Context) (context.Context, context.CancelFunc){soon, asked, soon} {
			short, cancel := ends(ctx)
			defer cancel()
			if _, err := comm.Recv(short, c, 1-c.Rank(), 0, make([]int, 1)); !errors.Is(err, errEnough) {
				return fmt.Errorf("got %v, want %v", err, errEnough)
			}
			if err := comm.Barrier(ctx, c); err != nil {
				return err
			}
			x := make([]int, 1) // and the receive is gone
			if _, err := comm.Sendrecv(ctx, c, 1-c.Rank(), 0, []int{c.Rank()}, 1-c.Rank(), 0, x); err != nil {
				return err
			}
			if err := equal("received", x, []int{1 - c.Rank()}); err != nil {
				return err
			}
		}
		return comm.Barrier(ctx, c)
	})
}

// A context that has ended before the call matches nothing, whatever is there: the
// message stays for the next receive, and nothing breaks.
func TestContextThatHasEndedMatchesNothing(t *testing.T) {
	for _, n := range []int{1, 1 << 20} { // kept, and waiting at the sender
		for _, p := range []int{1, 2} {
			inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
				if c.Rank() != 0 {
					return comm.Send(ctx, c, 0, 7, make([]byte, n))
				}
				if p == 1 {
					comm.Isend(c, 0, 7, make([]byte, n))
				}
				return matchNothing(ctx, c, c.Size()-1, make([]byte, n))
			})
		}
	}
}

func matchNothing(ctx context.Context, c *comm.Comm, from int, x []byte) error {
	synctest.Wait() // the message has been sent
	if _, err := c.Probe(ctx, from, 7); err != nil {
		return err
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errEnough)
	b := comm.Of(x)
	for name, err := range map[string]error{
		"recv":     second(c.Recv(ended, from, 7, b)),
		"recv any": second(c.Recv(ended, comm.AnySource, comm.AnyTag, b)),
		"sendrecv": second(c.Sendrecv(ended, 0, 8, comm.Of([]int{1}), from, 7, b)),
		"probe":    second(c.Probe(ended, from, 7)),
		"mprobe":   second(c.Mprobe(ended, from, 7)),
	} {
		if !errors.Is(err, errEnough) {
			return fmt.Errorf("%d bytes, %s: got %v, want %v", len(x), name, err, errEnough)
		}
	}
	m, err := c.Mprobe(ctx, from, 7)
	if err != nil {
		return err
	}
	if _, err := m.Recv(ended, b); !errors.Is(err, errEnough) {
		return fmt.Errorf("%d bytes, recv of a matched message: got %v, want %v", len(x), err, errEnough)
	}
	return second(m.Recv(ctx, b))
}

// A send that no receive has matched is withdrawn when its context ends.
func TestSendThatIsGivenUpBreaksNothing(t *testing.T) {
	for name, send := range map[string]func(ctx context.Context, c *comm.Comm) error{
		"large": func(ctx context.Context, c *comm.Comm) error {
			return comm.Send(ctx, c, 1, 0, make([]byte, 1<<20))
		},
		"ssend":      func(ctx context.Context, c *comm.Comm) error { return comm.Ssend(ctx, c, 1, 0, []int{1}) },
		"to oneself": func(ctx context.Context, c *comm.Comm) error { return comm.Ssend(ctx, c, 0, 0, []int{1}) },
		"sendrecv": func(ctx context.Context, c *comm.Comm) error {
			_, err := comm.Sendrecv(ctx, c, 1, 0, make([]byte, 1<<20), 1, 0, make([]int, 1))
			return err
		},
	} {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 1 {
				return second(comm.Recv(ctx, c, 0, 7, make([]int, 1)))
			}
			for _, ends := range []func(context.Context) (context.Context, context.CancelFunc){soon, asked} {
				short, cancel := ends(ctx)
				defer cancel()
				if err := send(short, c); !errors.Is(err, errEnough) {
					return fmt.Errorf("%s: got %v, want %v", name, err, errEnough)
				}
			}
			return comm.Send(ctx, c, 1, 7, []int{1})
		})
	}
}

// A collective that waits for its turn behind another breaks the communicator
// too when its context ends.
func TestQueuedCollectiveThatIsGivenUpBreaksTheComm(t *testing.T) {
	outcomes(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			if problem := wrongCause(second(comm.Recv(ctx, c, 0, 0, []int{})), 0, errEnough.Error()); problem != nil {
				t.Errorf("the other rank: %v", problem)
			}
			return nil
		}
		first := c.Ibarrier()
		short, cancel := soon(ctx)
		defer cancel()
		x := []int{1}
		if err := comm.Allreduce(short, c, x, x, comm.Sum); !errors.Is(err, errEnough) {
			t.Errorf("got %v, want %v", err, errEnough)
		}
		x[0] = 2 // the buffer is the caller's again
		if _, err := first.Wait(ctx); !errors.Is(err, comm.ErrRevoked) {
			t.Errorf("the barrier before it: %v, want ErrRevoked", err)
		}
		return nil
	})
}

func TestRevocationReachesACommThatIsNotMadeYet(t *testing.T) {
	outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		if c.Rank() == 0 { // at once, while others are still in Dup
			ended, cancel := context.WithCancelCause(ctx)
			cancel(errEnough)
			if err := comm.Barrier(ended, d); !errors.Is(err, errEnough) {
				t.Errorf("got %v, want %v", err, errEnough)
			}
		} else {
			err := comm.Barrier(ctx, d)
			if err == nil { // rank 0 had sent what this one needs of it
				err = comm.Barrier(ctx, d)
			}
			if problem := wrongCause(err, 0, errEnough.Error()); problem != nil {
				t.Errorf("rank %d: %v", c.Rank(), problem)
			}
		}
		if err := comm.Barrier(ctx, c); err != nil {
			t.Errorf("rank %d: the communicator it came from: %v", c.Rank(), err)
		}
		return nil
	})
}
