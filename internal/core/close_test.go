package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/comm"
)

// A rank may leave as soon as its part of the last collective is done: what it
// has sent still counts.
func TestRankMayLeaveBeforeOthersHaveReceivedWhatItSent(t *testing.T) {
	e := integers[int64]()
	for _, n := range []int{3, 30_000} { // kept, and waiting at the sender
		inBubble(t, 5, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				synctest.Wait() // the others have sent, and left if they could
			}
			sum := make([]int64, n)
			if err := comm.Reduce(ctx, c, 0, e.vector(c.Rank(), n), sum, comm.Sum); err != nil || c.Rank() != 0 {
				return err
			}
			return equal("reduce", sum, e.folded(comm.Sum, 5, n))
		})
	}
}

// A collective that needs a rank which has left fails on all ranks, those that
// have nothing to do with it included.
func TestCollectiveWithoutARankThatLeftFailsEverywhere(t *testing.T) {
	for _, kind := range everyKind {
		for _, p := range []int{2, 4, 7} {
			gone := p - 1
			inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
				if c.Rank() == gone {
					return nil // and Close
				}
				synctestWait(c, 0)
				missing(ctx, t, c, kind, gone)
				c.Close(ctx) // reports it once more
				return nil
			})
		}
	}
}

// synctestWait lets one rank sleep until all others do.
func synctestWait(c *comm.Comm, rank int) {
	if c.Rank() == rank {
		synctest.Wait()
	}
}

// missing does a collective that rank gone has left, and checks that it fails, or, if
// this rank's part needed no other rank, that the next one does.
func missing(ctx context.Context, t *testing.T, c *comm.Comm, kind string, gone int) {
	q := question{kind: kind, ranks: c.Size(), n: 10}
	if reduces(kind) {
		q.op = comm.Sum
	}
	err := answerAll(ctx, c, integers[int64](), []question{q})
	if err == nil {
		err = comm.Barrier(ctx, c)
	}
	if problem := wrongCause(err, gone, "has left"); problem != nil {
		t.Errorf("np=%d, %s: rank %d: %v", c.Size(), kind, c.Rank(), problem)
	}
}

// wrongCause says what is wrong with the error of a rank whose communicator was
// broken by another.
func wrongCause(err error, rank int, texts ...string) error {
	var r *comm.RevokedError
	if !errors.Is(err, comm.ErrRevoked) || !errors.As(err, &r) {
		return fmt.Errorf("got %v, want ErrRevoked", err)
	}
	if r.Rank != rank {
		return fmt.Errorf("%v: names rank %d, want %d", err, r.Rank, rank)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%v: does not say %q", err, text)
		}
	}
	return nil
}

// Ranks that left before this one had to do with them have left, over sockets and RDMA too: that
// breaks nothing, and a receive from anybody ends when all have.
func TestRanksThatLeftUnseen(t *testing.T) { leftUnseen(t, overTCP) }

func TestRanksThatLeftUnseenOverUCX(t *testing.T) { leftUnseen(t, overUCX) }

func leftUnseen(t *testing.T, over way) {
	const p = 4
	var left sync.WaitGroup
	left.Add(p - 1)
	err := errors.Join(over(t, p, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() != 0 {
			defer left.Done()
			return c.Close(ctx)
		}
		left.Wait()
		for _, src := range []int{2, comm.AnySource, 3} {
			if _, err := comm.Recv(ctx, c, src, 0, make([]byte, 1)); !errors.Is(err, comm.ErrLeft) {
				return fmt.Errorf("a receive from %d: got %v, want %v", src, err, comm.ErrLeft)
			}
		}
		if err := comm.Send(ctx, c, 1, 0, make([]byte, 1)); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("a send: got %v, want %v", err, comm.ErrLeft)
		}
		return c.Err()
	})...)
	if err != nil {
		t.Error(err)
	}
}
