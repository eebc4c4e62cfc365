package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/internal/boot"
)

var errBoom = errors.New("boom")

// A rank that dies while the others are in a collective breaks it for all of
// them, at once, and later calls give the same reason.
func TestDeathInACollectiveRevokesItOnAllOtherRanks(t *testing.T) {
	for _, kind := range everyKind {
		for _, p := range []int{2, 4, 7} {
			for _, n := range []int{10, 50_000} { // sent at once, and on request
				if n*p > 150_000 {
					continue
				}
				for _, panics := range []bool{false, true} {
					deathIn(t, question{kind: kind, ranks: p, n: n, root: p / 2, gaps: true}, (p+len(kind))%p, panics)
				}
			}
		}
	}
}

func deathIn(t *testing.T, q question, victim int, panics bool) {
	t.Helper()
	if reduces(q.kind) {
		q.op = comm.Sum
	}
	var took atomic.Int64 // the last that was not zero
	errs := outcomes(t, q.ranks, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == victim {
			synctest.Wait() // the others are as far as they get
			if panics {
				panic(errBoom)
			}
			return errBoom
		}
		start := time.Now()
		err := answerAll(ctx, c, integers[int64](), []question{q})
		if err == nil { // its part was done without the victim
			err = comm.Barrier(ctx, c)
		}
		if d := int64(time.Since(start)); d > 0 {
			took.Store(d)
		}
		if later := comm.Barrier(ctx, c); !sameReason(err, later) {
			return fmt.Errorf("later call: %w, first: %v", later, err)
		}
		return err
	})
	for r, err := range errs {
		if r == victim {
			continue
		}
		if problem := wrongCause(err, victim, "boom"); problem != nil {
			t.Errorf("%v: rank %d died, panic %v: rank %d: %v", q, victim, panics, r, problem)
		}
	}
	if took := time.Duration(took.Load()); took > 0 { // on the bubble's clock, which stands still while anything runs
		t.Errorf("%v: it took %v, want no waiting for a clock", q, took)
	}
}

func TestDeathReachesHundredsOfRanks(t *testing.T) {
	for _, kind := range []string{"barrier", "allreduce", "alltoall"} {
		deathIn(t, question{kind: kind, ranks: 200, n: 3}, 77, false)
	}
}

// sameReason reports whether two errors of a communicator have one cause.
func sameReason(a, b error) bool {
	var x, y *comm.RevokedError
	return errors.As(a, &x) && errors.As(b, &y) && *x == *y
}

// A dead rank breaks the communicators that hold it, and no others.
func TestDeathBreaksOnlyTheCommsOfTheDead(t *testing.T) {
	const p, victim = 6, 4
	errs := outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
		half, err := c.Split(ctx, c.Rank()/3, 0) // the victim is in the second
		if err != nil {
			return err
		}
		defer half.Close(ctx)
		if c.Rank() == victim {
			synctest.Wait() // all have the new communicator
			return errBoom
		}
		if problem := wrongCause(comm.Barrier(ctx, c), victim, "boom"); problem != nil {
			t.Errorf("rank %d, world: %v", c.Rank(), problem)
		}
		if c.Rank() >= 3 {
			if problem := wrongCause(comm.Barrier(ctx, half), 1, "boom"); problem != nil { // its number there
				t.Errorf("rank %d, its half: %v", c.Rank(), problem)
			}
			return nil
		}
		x := []int{1}
		if err := comm.Allreduce(ctx, half, x, x, comm.Sum); err != nil || x[0] != 3 {
			t.Errorf("rank %d, the other half: %d, %v", c.Rank(), x[0], err)
		}
		return nil
	})
	for r, err := range errs {
		if r != victim && !errors.Is(err, comm.ErrRevoked) { // from Close of the world
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// A communicator made after the death, from one that is whole, has nothing to
// do with the dead; a Dup of a broken one fails.
func TestCommsMadeAfterADeath(t *testing.T) {
	const p, victim = 4, 3
	outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
		rest, err := c.Split(ctx, c.Rank()/victim, 0)
		if err != nil {
			return err
		}
		defer rest.Close(ctx)
		if c.Rank() == victim {
			synctest.Wait()
			return errBoom
		}
		comm.Barrier(ctx, c) // learns of it
		if _, err := c.Dup(ctx); wrongCause(err, victim) != nil {
			t.Errorf("Dup of the broken world: %v", err)
		}
		d, err := rest.Dup(ctx)
		if err != nil {
			t.Errorf("Dup of the survivors: %v", err)
			return err
		}
		defer d.Close(ctx)
		if err := comm.Barrier(ctx, d); err != nil {
			t.Errorf("barrier of the survivors: %v", err)
		}
		return nil
	})
}

func TestDeathEndsMessagesUnderWay(t *testing.T) {
	for _, n := range messageSizes {
		outcomes(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 1 {
				synctest.Wait()
				return errBoom
			}
			x := make([]int64, n)
			rs := map[string]comm.Request{
				"irecv":       comm.Irecv(c, 1, 0, x),
				"irecv any":   comm.Irecv(c, comm.AnySource, comm.AnyTag, make([]int64, n)),
				"issend":      comm.Issend(c, 1, 0, make([]int64, n)),
				"irecv other": comm.Irecv(c, 0, 5, make([]int64, n)),
				"ibarrier":    c.Ibarrier(),
			}
			_, err := c.Probe(ctx, 1, 3)
			for name, r := range rs {
				if problem := wrongCause(second(r.Wait(ctx)), 1, "boom"); problem != nil {
					t.Errorf("%d elements, %s: %v", n, name, problem)
				}
			}
			if problem := wrongCause(err, 1, "boom"); problem != nil {
				t.Errorf("probe: %v", problem)
			}
			if problem := wrongCause(comm.Send(ctx, c, 1, 0, x), 1, "boom"); problem != nil {
				t.Errorf("send afterwards: %v", problem)
			}
			return nil
		})
	}
}

// Over TCP, where nothing but the launcher may tell that a rank is dead.
func TestDeathToldByTheLauncherEndsCollectivesOverTCP(t *testing.T) {
	const p, victim = 4, 2
	var waiting sync.WaitGroup
	waiting.Add(p - 1)
	overTCP(t, p, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == victim {
			waiting.Wait()
			inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
			return nil
		}
		r := c.Iallgather(comm.Of([]int{1}), comm.Of(make([]int, p)))
		waiting.Done()
		_, err := r.Wait(ctx)
		if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
			t.Errorf("rank %d: %v", c.Rank(), problem)
		}
		return nil
	})
}

func TestAbortEndsTheJobEverywhere(t *testing.T) {
	errs := outcomes(t, 4, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			synctest.Wait()
			return c.Abort(3, "the answer is wrong")
		}
		err := comm.Barrier(ctx, c)
		if problem := wrongCause(err, -1, "rank 1", "status 3", "the answer is wrong"); problem != nil {
			t.Errorf("rank %d: %v", c.Rank(), problem)
		}
		return nil
	})
	for r, err := range errs {
		if r != 1 && !errors.Is(err, comm.ErrRevoked) { // from Close
			t.Errorf("rank %d: %v, want ErrRevoked", r, err)
		}
	}
}
