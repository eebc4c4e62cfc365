package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// died reports whether err is what a rank returns that was to die.
func died(err error) bool { return errors.Is(err, errBoom) }

func TestSurvivorsShrinkAndGoOn(t *testing.T) {
	for _, p := range []int{2, 4, 7} {
		for victim := range p {
			errs := outcomes(t, p, func(ctx context.Context, world *comm.Comm) error {
				if world.Rank() == victim {
					synctest.Wait() // the others are in the collective
					return errBoom
				}
				if problem := wrongCause(comm.Barrier(ctx, world), victim, "boom"); problem != nil {
					return problem
				}
				c, err := world.Shrink(ctx)
				if err != nil {
					return err
				}
				number := world.Rank()
				if number > victim {
					number--
				}
				if c.Size() != p-1 || c.Rank() != number {
					return fmt.Errorf("%v of %v without rank %d: want rank %d of %d", c, world, victim, number, p-1)
				}
				if err := world.Close(ctx); err != nil {
					return err
				}
				return errors.Join(useAll(ctx, c), c.Close(ctx))
			})
			for r, err := range errs {
				if err != nil && r != victim {
					t.Errorf("%d ranks, rank %d died: rank %d: %v", p, victim, r, err)
				}
			}
		}
	}
}

// A name counts the recoveries in a row, the same on all ranks, and does not grow with them.
func TestNamesCountRecoveries(t *testing.T) {
	const p = 4
	errs := outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
		shrinkTo := func(want string) error {
			dead := c.Size() - 1
			if c.Rank() == dead {
				synctest.Wait() // the others are in the collective
				return errBoom
			}
			err := comm.Barrier(ctx, c)
			if problem := wrongCause(err, dead, "boom"); problem != nil ||
				!strings.Contains(err.Error(), "of "+c.Name()+": ") {
				return fmt.Errorf("%v (%v): want the cause and the name %s", err, problem, c.Name())
			}
			next, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			if next.Name() != want {
				return fmt.Errorf("the name after %s is %q, want %q", c.Name(), next.Name(), want)
			}
			err = c.Close(ctx)
			c = next
			return err
		}
		for _, want := range []string{"world/shrink", "world/shrink(2)"} {
			if err := shrinkTo(want); err != nil {
				return err
			}
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		if c = dup; c.Name() != "world/shrink(2)/dup" {
			return fmt.Errorf("the name of a duplicate is %q", c.Name())
		}
		if err := shrinkTo("world/shrink(2)/dup/shrink"); err != nil {
			return err
		}
		c.SetName("rows")
		again, err := c.Shrink(ctx) // of a communicator that is whole
		if err != nil {
			return err
		}
		if again.Name() != "rows/shrink(2)" {
			return fmt.Errorf("the name after rows is %q, want that it counts", again.Name())
		}
		return errors.Join(c.Close(ctx), again.Close(ctx))
	})
	for r, err := range errs {
		if err != nil && !(died(err) && r > 0) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// useAll does collectives, messages and a Split with all of c.
func useAll(ctx context.Context, c *comm.Comm) error {
	sum := []int{0}
	if err := comm.Allreduce(ctx, c, []int{c.Rank() + 1}, sum, comm.Sum); err != nil {
		return err
	}
	n := c.Size()
	if sum[0] != n*(n+1)/2 {
		return fmt.Errorf("%v: sum %d, want %d", c, sum[0], n*(n+1)/2)
	}
	for root := range n {
		x := []int{c.Rank()}
		if err := comm.Bcast(ctx, c, root, x); err != nil {
			return err
		}
		if x[0] != root {
			return fmt.Errorf("%v: bcast of rank %d gives %d", c, root, x[0])
		}
	}
	got := []int{0}
	next, last := (c.Rank()+1)%n, (c.Rank()+n-1)%n
	if _, err := comm.Sendrecv(ctx, c, next, 1, []int{c.Rank()}, last, 1, got); err != nil {
		return err
	}
	if got[0] != last {
		return fmt.Errorf("%v: got the message %d, want %d", c, got[0], last)
	}
	half, err := c.Split(ctx, c.Rank()%2, 0)
	if err != nil {
		return err
	}
	return errors.Join(comm.Barrier(ctx, half), half.Close(ctx))
}

// TestStressDeathsAtRandom lets ranks die anywhere: in collectives, before they shrink, while
// others do, and after. Those that live come to the end.
func TestStressDeathsAtRandom(t *testing.T) {
	for round, end := 0, stress.Until(t); round < 40 || time.Now().Before(end); round++ {
		seed := rand.Uint64()
		p := 2 + round%7
		errs := outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
			return survive(ctx, c, rand.New(rand.NewPCG(seed, uint64(c.Rank()))))
		})
		for r, err := range errs {
			if err != nil && !died(err) {
				t.Fatalf("seed %d, %d ranks: rank %d: %v", seed, p, r, err)
			}
		}
	}
}

// survive makes steps, each of which all ranks that are left count, and continues without the dead.
func survive(ctx context.Context, c *comm.Comm, rng *rand.Rand) error {
	const steps = 20
	mayDie := func() error {
		if rng.IntN(60) == 0 && c.Size() > 1 {
			return errBoom
		}
		return nil
	}
	step := []int{0}
	train := func() error {
		if err := comm.Allreduce(ctx, c, step, step, comm.Max); err != nil {
			return err
		}
		for step[0] < steps {
			if err := mayDie(); err != nil {
				return err
			}
			n := []int{1}
			if err := comm.Allreduce(ctx, c, n, n, comm.Sum); err != nil {
				return err
			}
			if n[0] != c.Size() {
				return fmt.Errorf("%v: %d ranks have made a step", c, n[0])
			}
			step[0]++
		}
		return nil
	}
	for {
		err := train()
		if err == nil {
			return c.Close(ctx)
		}
		if !errors.Is(err, comm.ErrRevoked) && !errors.Is(err, comm.ErrLeft) {
			return err
		}
		if err := mayDie(); err != nil {
			return err
		}
		next, err := c.Shrink(ctx)
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		if c = next; c.Err() == nil {
			if err := mayDie(); err != nil {
				return err
			}
		}
	}
}

func TestAgreeIsTheSameOnAllThatLive(t *testing.T) {
	const p, victim = 5, 3
	errs := outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
		flags, err := c.Agree(ctx, ^(uint64(1) << c.Rank()))
		if want := ^uint64(0b11111); flags != want || err != nil {
			return fmt.Errorf("all live: %b, %w; want %b", flags, err, want)
		}
		if c.Rank() == victim {
			synctest.Wait()
			return errBoom
		}
		flags, err = c.Agree(ctx, ^(uint64(1) << c.Rank()))
		if want := ^uint64(0b10111); flags != want {
			return fmt.Errorf("without rank %d: %b, want %b", victim, flags, want)
		}
		var revoked *comm.RevokedError
		if barrier := comm.Barrier(ctx, c); !errors.As(barrier, &revoked) || !revoked.Died {
			return fmt.Errorf("the barrier fails with %w: want that rank %d has died", barrier, victim)
		}
		if revoked = nil; !errors.As(err, &revoked) || !revoked.Died {
			return fmt.Errorf("%w: want that rank %d has died", err, victim)
		}
		return wrongCause(err, victim, "died")
	})
	for r, err := range errs {
		if r != victim && !errors.Is(err, comm.ErrRevoked) { // of Close: the world is broken
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestWhoGivesUpInShrinkBreaksTheNewComm(t *testing.T) {
	const p = 3
	outcomes(t, p, func(ctx context.Context, world *comm.Comm) error {
		if world.Rank() == 0 {
			early, cancel := context.WithCancelCause(ctx)
			go func() { synctest.Wait(); cancel(errBoom) }()
			if _, err := world.Shrink(early); !errors.Is(err, errBoom) {
				t.Errorf("rank 0 gives up: %v, want %v", err, errBoom)
			}
			if err := comm.Send(ctx, world, 1, 0, []int{1}); err != nil { // the world is whole
				t.Error(err)
			}
			return comm.Barrier(ctx, world)
		}
		if world.Rank() == 1 { // so that rank 0 waits
			if _, err := comm.Recv(ctx, world, 0, 0, []int{0}); err != nil {
				t.Error(err)
			}
		}
		c, err := world.Shrink(ctx)
		if err != nil {
			t.Errorf("rank %d: %v", world.Rank(), err)
			return err
		}
		if problem := wrongCause(comm.Barrier(ctx, c), 0, "gave up"); problem != nil {
			t.Errorf("rank %d: %v", world.Rank(), problem)
		}
		return errors.Join(c.Close(ctx), comm.Barrier(ctx, world))
	})
}

func TestWhoGaveUpInShrinkVotesNoMore(t *testing.T) {
	outcomes(t, 3, func(ctx context.Context, world *comm.Comm) error {
		if world.Rank() != 0 {
			c, err := world.Shrink(ctx)
			for ; err == nil && c.Size() == 3; c, err = c.Shrink(ctx) { // until rank 0 ends
			}
			if err != nil || c.Size() != 2 {
				t.Errorf("rank %d: %v, %v; want a communicator of 2", world.Rank(), c, err)
			}
			return err
		}
		early, cancel := context.WithCancelCause(ctx)
		cancel(errBoom)
		if _, err := world.Shrink(early); !errors.Is(err, errBoom) {
			t.Errorf("rank 0 gives up: %v, want %v", err, errBoom)
		}
		_, shrink := world.Shrink(ctx)
		_, restore := world.Restore(ctx)
		_, agree := world.Agree(ctx, 1)
		for _, err := range []error{shrink, restore, agree} {
			if err == nil || !strings.Contains(err.Error(), "must end") {
				t.Errorf("rank 0 votes again: %v, want that it must end", err)
			}
		}
		return errBoom
	})
}

func TestShrinkAndAgreeDiffer(t *testing.T) {
	outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
		var err error
		if c.Rank() == 1 {
			_, err = c.Agree(ctx, 1)
		} else {
			_, err = c.Shrink(ctx)
		}
		if !errors.Is(err, comm.ErrMismatch) {
			t.Errorf("rank %d: %v, want ErrMismatch", c.Rank(), err)
		}
		return nil
	})
}

// Those that wait in a communicator without the dead join the others when it is revoked.
func TestRevokeCallsThoseThatWaitElsewhere(t *testing.T) {
	const p, victim = 4, 3
	errs := outcomes(t, p, func(ctx context.Context, world *comm.Comm) error {
		rest, err := world.Split(ctx, world.Rank()/victim, 0)
		if err != nil {
			return err
		}
		switch world.Rank() {
		case victim:
			synctest.Wait()
			return errBoom
		case 0:
			if problem := wrongCause(comm.Barrier(ctx, world), victim); problem != nil {
				return problem
			}
			rest.Revoke("a rank of the world died")
		default:
			if problem := wrongCause(comm.Barrier(ctx, rest), 0, "a rank of the world died"); problem != nil {
				return problem
			}
		}
		c, err := world.Shrink(ctx)
		if err != nil {
			return err
		}
		return errors.Join(rest.Close(ctx), world.Close(ctx), useAll(ctx, c), c.Close(ctx))
	})
	for r, err := range errs {
		if r != victim && err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestTheEndOfTheJobEndsShrink(t *testing.T) {
	outcomes(t, 3, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 2 {
			synctest.Wait()
			return c.Abort(3, "enough")
		}
		for range 2 { // that has ended before it begins, too
			_, err := c.Shrink(ctx)
			if problem := wrongCause(err, -1, "enough"); problem != nil {
				t.Errorf("rank %d: %v", c.Rank(), problem)
			}
		}
		return nil
	})
}

// Goroutines are not replaced: Restore fails on all, and Shrink remains.
func TestGoroutinesAreNotReplaced(t *testing.T) {
	const p, victim = 4, 1
	errs := outcomes(t, p, func(ctx context.Context, world *comm.Comm) error {
		if world.Rank() == victim {
			synctest.Wait()
			return errBoom
		}
		comm.Barrier(ctx, world) // learns of it
		if _, err := world.Restore(ctx); err == nil || !strings.Contains(err.Error(), "cannot be replaced") {
			return fmt.Errorf("restore: %w, want that rank %d cannot be replaced", err, victim)
		}
		c, err := world.Shrink(ctx)
		if err != nil {
			return err
		}
		return errors.Join(world.Close(ctx), useAll(ctx, c), c.Close(ctx))
	})
	for r, err := range errs {
		if r != victim && err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestShrinkOfAClosedComm(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, world *comm.Comm) error {
		c, err := world.Dup(ctx)
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		if _, err := c.Shrink(ctx); !errors.Is(err, comm.ErrClosed) {
			return fmt.Errorf("shrink: %w, want ErrClosed", err)
		}
		if _, err := c.Agree(ctx, 1); !errors.Is(err, comm.ErrClosed) {
			return fmt.Errorf("agree: %w, want ErrClosed", err)
		}
		return nil
	})
}

func TestAWorldOfOneShrinks(t *testing.T) {
	inBubble(t, 1, func(ctx context.Context, world *comm.Comm) error {
		c, err := world.Shrink(ctx)
		if err != nil {
			return err
		}
		flags, err := c.Agree(ctx, 5)
		if c.Size() != 1 || flags != 5 {
			err = errors.Join(err, fmt.Errorf("%v agrees on %d, want 5", c, flags))
		}
		return errors.Join(err, c.Close(ctx))
	})
}

// Over TCP, whose connections to the dead continue here: only the launcher reports them.
func TestShrinkOverTCP(t *testing.T) {
	const p, victim = 4, 1
	var waiting sync.WaitGroup
	var over atomic.Int32
	waiting.Add(p - 1)
	errs := overTCP(t, p, func(ctx context.Context, world *comm.Comm) error {
		if world.Rank() == victim {
			waiting.Wait()
			inside(world).Launcher().(*boot.Member).Die("killed by signal 9")
			return nil
		}
		r := world.Ibarrier()
		waiting.Done()
		if _, err := r.Wait(ctx); wrongCause(err, victim, "killed by signal 9") != nil {
			return err
		}
		c, err := world.Shrink(ctx)
		if err != nil {
			return err
		}
		over.Add(1)
		return errors.Join(useAll(ctx, c), c.Close(ctx))
	})
	for r, err := range errs {
		if r != victim && !errors.Is(err, comm.ErrRevoked) { // of Close of the world
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if over.Load() != p-1 {
		t.Errorf("%d ranks shrank the world, want %d", over.Load(), p-1)
	}
}

// A function of the program is not called on a goroutine that waits for an agreement in the
// background.
func TestAgreementsInTheBackgroundCallNoFunctions(t *testing.T) {
	var called atomic.Int32
	op := call.Op{Kind: mem.Custom, Program: true, Func: func(acc, in mem.Buffer) { called.Add(1) }}
	synctest.Test(t, func(t *testing.T) {
		tested := make(chan struct{})
		commtest.Run(t, 2, func(ctx context.Context, world *comm.Comm) error {
			c := inside(world)
			reduced, agreed := c.Promise(), make(chan error, 1)
			go func() {
				if world.Rank() == 1 {
					<-tested // so rank 0 waits
				}
				_, err := c.Agree(core.InBackground(ctx), 1)
				agreed <- err
			}()
			go func() {
				b := comm.Of([]int64{1})
				c.Complete(reduced, c.Do(core.InBackground(ctx), new(call.Call).Allreduce(b, b, op)))
			}()
			if world.Rank() == 0 {
				synctest.Wait()
				if n := called.Load(); n > 0 {
					t.Errorf("%d functions were called while no thread of the program waited", n)
				}
				close(tested)
			}
			<-tested
			_, err := reduced.Wait(ctx)
			return errors.Join(err, <-agreed)
		})
	})
}
