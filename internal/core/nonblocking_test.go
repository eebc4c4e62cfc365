package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/comm"
)

// sumOfRanks is what an Allreduce of rank+i gives on p ranks.
func sumOfRanks(p, i int) int { return p*(p-1)/2 + p*i }

func TestNonblockingCollectivesRunInTheOrderOfTheirCalls(t *testing.T) {
	for _, p := range []int{1, 2, 5} {
		inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
			const n = 20
			v := make([][]int, n)
			rs := make([]comm.Request, n)
			for i := range n { // each takes the result of the one before
				v[i] = []int{c.Rank()}
				in := comm.Of(v[max(i-1, 0)])
				rs[i] = c.Iallreduce(in, comm.Of(v[i]), comm.Max)
			}
			if _, err := rs[n-1].Wait(ctx); err != nil {
				return err
			}
			for i, r := range rs {
				if !r.Done() {
					return fmt.Errorf("collective %d is done, %d before it is not", n-1, i)
				}
				if v[i][0] != p-1 {
					return fmt.Errorf("collective %d: got %d, want %d", i, v[i][0], p-1)
				}
			}
			return comm.WaitAll(ctx, rs...)
		})
	}
}

func TestBlockingAndNonblockingCollectivesMix(t *testing.T) {
	const p = 4
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		var rs []comm.Request
		var got [][]int
		for i := range 30 {
			x := []int{c.Rank() + i}
			got = append(got, x)
			if (i+c.Rank())%3 == 0 { // blocking here, queued elsewhere
				if err := comm.Allreduce(ctx, c, x, x, comm.Sum); err != nil {
					return err
				}
				continue
			}
			rs = append(rs, c.Iallreduce(comm.Of(x), comm.Of(x), comm.Sum))
		}
		if err := comm.WaitAll(ctx, rs...); err != nil {
			return err
		}
		for i, x := range got {
			if x[0] != sumOfRanks(p, i) {
				return fmt.Errorf("collective %d: got %d, want %d", i, x[0], sumOfRanks(p, i))
			}
		}
		return nil
	})
}

// Who waits runs what has not begun: whichever it is, in whatever order, all get their results.
func TestWaitersRunCollectivesInTheOrderOfTheirCalls(t *testing.T) {
	const p, n, waiters = 3, 40, 4
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		comms := []*comm.Comm{c, d}
		rs := make([][]comm.Request, waiters)
		got := make([]int, n)
		for j := range n {
			i := j ^ c.Rank()&1 // of two in a row, which one comes first differs
			x := comm.Of(got[i : i+1])
			got[i] = c.Rank() + i
			rs[j%waiters] = append(rs[j%waiters], comms[i%2].Iallreduce(x, x, comm.Max))
		}
		fails := make(chan error, waiters)
		for w := range waiters {
			go func() {
				if w%2 == 0 {
					fails <- comm.WaitAll(context.Background(), rs[w]...)
					return
				}
				var err error
				for i := range rs[w] {
					_, e := rs[w][len(rs[w])-1-i].Wait(context.Background())
					err = errors.Join(err, e)
				}
				fails <- err
			}()
		}
		x := []int{c.Rank()}
		err = comm.Allreduce(context.Background(), c, x, x, comm.Sum) // behind n/2 others
		for range waiters {
			err = errors.Join(err, <-fails)
		}
		if err == nil && x[0] != sumOfRanks(p, 0) {
			err = fmt.Errorf("the blocking one: got %d, want %d", x[0], sumOfRanks(p, 0))
		}
		for i, x := range got {
			if err == nil && x != p-1+i {
				err = fmt.Errorf("collective %d: got %d, want %d", i, x, p-1+i)
			}
		}
		return err
	})
}

// On two communicators collectives may be called in different orders.
func TestTwoCommunicatorsAreIndependent(t *testing.T) {
	const p = 3
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		first, second := c, d
		if c.Rank() == 1 {
			first, second = d, c
		}
		x, y := []int{c.Rank()}, []int{c.Rank() + 1}
		sumOn := func(on *comm.Comm) comm.Request {
			if on == c {
				return c.Iallreduce(comm.Of(x), comm.Of(x), comm.Sum)
			}
			return d.Iallreduce(comm.Of(y), comm.Of(y), comm.Sum)
		}
		rs := []comm.Request{sumOn(first), sumOn(second)}
		if err := comm.WaitAll(ctx, rs[1], rs[0]); err != nil {
			return err
		}
		if x[0] != sumOfRanks(p, 0) || y[0] != sumOfRanks(p, 1) {
			return fmt.Errorf("got %d and %d", x[0], y[0])
		}
		return nil
	})
}

func TestTwoGoroutinesInsideBlockingCollectivesGetErrConcurrent(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			inside := make(chan error)
			go func() { inside <- comm.Barrier(ctx, c) }()
			synctest.Wait()
			if err := comm.Barrier(ctx, c); !errors.Is(err, comm.ErrConcurrent) {
				return fmt.Errorf("second goroutine: got %v, want ErrConcurrent", err)
			}
			if err := comm.Send(ctx, c, 1, 0, []int{}); err != nil { // messages are no collectives
				return err
			}
			if err := <-inside; err != nil {
				return err
			}
		} else if _, err := comm.Recv(ctx, c, 0, 0, []int{}); err != nil {
			return err
		} else if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		return comm.Barrier(ctx, c) // and nothing broke
	})
}

func TestBlockingCollectiveQueuedBehindAnotherIsInsideToo(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			r := c.Ibarrier()
			inside := make(chan error)
			go func() { inside <- comm.Barrier(ctx, c) }() // queued
			synctest.Wait()
			if err := comm.Barrier(ctx, c); !errors.Is(err, comm.ErrConcurrent) {
				return fmt.Errorf("got %v, want ErrConcurrent", err)
			}
			return errors.Join(comm.Send(ctx, c, 1, 0, []int{}), second(r.Wait(ctx)), <-inside)
		}
		if _, err := comm.Recv(ctx, c, 0, 0, []int{}); err != nil {
			return err
		}
		return errors.Join(comm.Barrier(ctx, c), comm.Barrier(ctx, c))
	})
}

func TestWaitThatEndsLeavesTheOperationGoing(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			if _, err := comm.Recv(ctx, c, 0, 0, []int{}); err != nil {
				return err
			}
			return errors.Join(comm.Barrier(ctx, c), comm.Send(ctx, c, 0, 1, []int{3}))
		}
		why := errors.New("had enough")
		short, cancel := context.WithCancelCause(ctx)
		cancel(why)
		x := make([]int, 1)
		rs := []comm.Request{c.Ibarrier(), comm.Irecv(c, 1, 1, x)}
		for _, r := range rs {
			if _, err := r.Wait(short); !errors.Is(err, why) || r.Done() {
				return fmt.Errorf("got %v, done %v: want %v, not done", err, r.Done(), why)
			}
		}
		if err := comm.WaitAll(short, rs...); !errors.Is(err, why) {
			return fmt.Errorf("WaitAll: got %v, want %v", err, why)
		}
		if err := errors.Join(comm.Send(ctx, c, 1, 0, []int{}), comm.WaitAll(ctx, rs...)); err != nil {
			return err
		}
		return equal("received", x, []int{3})
	})
}

func TestPersistentCollectivesCanBeStartedAgainAndAgain(t *testing.T) {
	const p = 3
	e := integers[int64]()
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		for _, kind := range everyKind {
			q := question{kind: kind, ranks: p, n: 10, root: 1, gaps: true, inPlace: kind != "bcast"}
			if reduces(kind) {
				q.op = comm.Sum
			}
			a := ask(q, e, c.Rank())
			r := formOf[int64](kind).persistent(c, &a.args)
			for range 3 {
				a.fill()
				if _, err := r.Start().Wait(ctx); err != nil {
					return err
				}
				if err := a.check(); err != nil {
					return fmt.Errorf("%v: %w", q, err)
				}
			}
		}
		return nil
	})
}

// Collectives in the background and messages of other goroutines continue side by
// side.
func TestCollectivesOverlapWithMessagesOfOtherGoroutines(t *testing.T) {
	inBubble(t, 4, func(ctx context.Context, c *comm.Comm) error { return overlap(ctx, c, 30) })
}

func TestCollectivesOverlapWithMessagesOverTCP(t *testing.T) {
	err := errors.Join(overTCP(t, 3, func(ctx context.Context, c *comm.Comm) error { return overlap(ctx, c, 20) })...)
	if err != nil {
		t.Error(err)
	}
}

func overlap(ctx context.Context, c *comm.Comm, rounds int) error {
	errs := make([]error, 4)
	var all sync.WaitGroup
	for g := range 3 {
		all.Go(func() { errs[g] = chatter(ctx, c, g, rounds) })
	}
	all.Go(func() {
		for i := range rounds {
			x := make([]int64, messageSizes[i%4]+1)
			x[0] = int64(c.Rank() + i)
			if _, err := c.Iallreduce(comm.Of(x), comm.Of(x), comm.Sum).Wait(ctx); err != nil {
				errs[3] = err
				return
			}
			if x[0] != int64(sumOfRanks(c.Size(), i)) {
				errs[3] = fmt.Errorf("allreduce %d: got %d", i, x[0])
			}
		}
	})
	all.Wait()
	return errors.Join(errs...)
}

// chatter exchanges messages of all sizes with every rank, under a tag.
func chatter(ctx context.Context, c *comm.Comm, tag, rounds int) error {
	e := integers[int64]()
	for i := range rounds {
		n := messageSizes[(i+tag)%4]
		to, from := (c.Rank()+i)%c.Size(), (c.Rank()-i%c.Size()+c.Size())%c.Size()
		in := make([]int64, n)
		r, s := comm.Irecv(c, from, tag, in), comm.Isend(c, to, tag, e.vector(c.Rank()+i, n))
		if err := comm.WaitAll(ctx, s, r); err != nil {
			return err
		}
		if err := equal(fmt.Sprintf("tag %d, round %d", tag, i), in, e.vector(from+i, n)); err != nil {
			return err
		}
	}
	return nil
}
