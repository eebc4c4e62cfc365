package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
)

func TestPersistentMessagesCanBeStartedAgainAndAgain(t *testing.T) {
	for _, n := range messageSizes {
		for _, sync := range []bool{false, true} {
			inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
				out, in := make([]int64, n), make([]int64, n)
				s, r := c.SendInit(1-c.Rank(), 3, comm.Of(out)), c.RecvInit(1-c.Rank(), 3, comm.Of(in))
				if sync {
					s = c.SsendInit(1-c.Rank(), 3, comm.Of(out))
				}
				for i := range 5 {
					copy(out, integers[int64]().vector(c.Rank()+i, n))
					if err := comm.WaitAll(ctx, r.Start(), s.Start()); err != nil {
						return err
					}
					if err := equal("received", in, integers[int64]().vector(1-c.Rank()+i, n)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// What a Request stands for in package message is used again as soon as its outcome has
// been told, while other goroutines may still be asking for it.
func TestOutcomeIsReportedOnceWhileOthersAreStarted(t *testing.T) {
	const messages, waiters = 300, 3
	errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		outcomes := make(chan error, 2*messages*waiters)
		var reported atomic.Int32
		check := func(r comm.Request, tag int, in *int64) {
			st, err := r.Wait(ctx)
			want := comm.Status{Source: 1 - c.Rank(), Tag: tag, Bytes: 8, Type: comm.Of([]int64(nil)).Type()}
			switch {
			case err != nil:
			case st == want:
				reported.Add(1)
			case st != emptyStatus:
				err = fmt.Errorf("message %d: %+v, want %+v or an empty one", tag, st, want)
			}
			if err == nil && *in != int64(tag) {
				err = fmt.Errorf("message %d: received %d", tag, *in)
			}
			outcomes <- err
		}
		for i := range messages {
			in, out := []int64{-1}, []int64{int64(i)}
			r, s := comm.Irecv(c, 1-c.Rank(), i, in), comm.Isend(c, 1-c.Rank(), i, out)
			for range waiters {
				go check(r, i, &in[0])
				go check(s, i, &out[0])
			}
		}
		var all error
		for range cap(outcomes) {
			all = errors.Join(all, <-outcomes)
		}
		return errors.Join(all, equal("receives told of", []int{int(reported.Load())}, []int{messages}))
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var emptyStatus = comm.Status{Source: comm.AnySource, Tag: comm.AnyTag}

// A Request that was waited for names nothing any more, least of all the operations
// that came after it.
func TestRequestsThatWereWaitedForAreDoneAndNothingElse(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		x, y := make([]int, 1), []int{5}
		old := []comm.Request{{}, comm.Irecv(c, 1-c.Rank(), 0, x), comm.Isend(c, 1-c.Rank(), 0, y), c.Ibarrier()}
		if err := comm.WaitAll(ctx, old...); err != nil {
			return err
		}
		now := []comm.Request{comm.Irecv(c, 1-c.Rank(), 1, x), comm.Issend(c, 1-c.Rank(), 1, y), c.Ibarrier()}
		for i, r := range old {
			if !r.Done() || r.Cancel() {
				return fmt.Errorf("request %d: done %v, or it was cancelled", i, r.Done())
			}
			if st, err := r.Wait(ctx); err != nil || st != emptyStatus {
				return fmt.Errorf("Wait of request %d: %+v, %v", i, st, err)
			}
			if st, done, err := r.Test(); !done || err != nil || st != emptyStatus {
				return fmt.Errorf("Test of request %d: %+v, %v, %v", i, st, done, err)
			}
		}
		if _, err := comm.WaitSome(ctx, old...); err != nil {
			return err
		}
		return comm.WaitAll(ctx, append(old, now...)...)
	})
}

func TestErrorsAreReturnedEveryTime(t *testing.T) {
	inBubble(t, 1, func(ctx context.Context, c *comm.Comm) error {
		x := make([]int, 2)
		if err := comm.Send(ctx, c, 0, 0, x); err != nil {
			return err
		}
		r := comm.Irecv(c, 0, 0, x[:1])
		for range 3 {
			if err := comm.WaitAll(ctx, comm.Request{}, r); !errors.Is(err, comm.ErrTruncated) {
				return fmt.Errorf("WaitAll: got %v, want ErrTruncated", err)
			}
			if _, err := r.Wait(ctx); !errors.Is(err, comm.ErrTruncated) {
				return fmt.Errorf("Wait: got %v, want ErrTruncated", err)
			}
		}
		return nil
	})
}

func TestStartOfAnActiveRequestIsErrActive(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			if _, err := comm.Recv(ctx, c, 0, 9, []int{}); err != nil { // until the other has tried
				return err
			}
			return errors.Join(comm.Barrier(ctx, c),
				second(comm.Recv(ctx, c, 0, 2, make([]int, 1))), comm.Send(ctx, c, 0, 1, []int{1}))
		}
		x := make([]int, 1)
		var rs []comm.Request
		for _, p := range []*comm.Persistent{c.RecvInit(1, 1, comm.Of(x)), c.SsendInit(1, 2, comm.Of([]int{1})),
			c.BarrierInit()} {
			rs = append(rs, p.Start())
			if _, err := p.Start().Wait(ctx); !errors.Is(err, comm.ErrActive) {
				return fmt.Errorf("second Start: got %v, want ErrActive", err)
			}
		}
		return errors.Join(comm.Send(ctx, c, 1, 9, []int{}), comm.WaitAll(ctx, rs...))
	})
}

func TestStartReportsWrongArguments(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		x := comm.Of(make([]int, 1))
		for _, p := range []*comm.Persistent{c.SendInit(7, 0, x), c.RecvInit(0, -5, x), c.BcastInit(-1, x)} {
			if _, err := p.Start().Wait(ctx); !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("got %v, want ErrArgument", err)
			}
		}
		return comm.Barrier(ctx, c)
	})
}

func TestWaitAnyAndWaitSomeReturnWhatIsDone(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			for _, tag := range []int{2, 0, 1} {
				if err := comm.Send(ctx, c, 0, tag, []int{tag}); err != nil {
					return err
				}
				if _, err := comm.Recv(ctx, c, 0, 9, []int{}); err != nil {
					return err
				}
			}
			return nil
		}
		got := make([][]int, 3)
		rs := make([]comm.Request, 3)
		for tag := range rs {
			got[tag] = make([]int, 1)
			rs[tag] = comm.Irecv(c, 1, tag, got[tag])
		}
		var order []int
		for open := slices.Clone(rs); len(open) > 0; {
			i, st, err := comm.WaitAny(ctx, open...)
			if err != nil {
				return err
			}
			order = append(order, st.Tag)
			if !open[i].Done() || got[st.Tag][0] != st.Tag {
				return fmt.Errorf("WaitAny: index %d, status %+v, got %v", i, st, got)
			}
			open = slices.Delete(open, i, i+1)
			if err := comm.Send(ctx, c, 1, 9, []int{}); err != nil {
				return err
			}
		}
		if err := equal("order", order, []int{2, 0, 1}); err != nil {
			return err
		}
		done, err := comm.WaitSome(ctx, rs...)
		return errors.Join(err, equal("WaitSome", done, []int{0, 1, 2}))
	})
}

func TestWaitAnyOfNothingIsRefused(t *testing.T) {
	if _, _, err := comm.WaitAny(t.Context()); !errors.Is(err, comm.ErrArgument) {
		t.Errorf("WaitAny: got %v, want ErrArgument", err)
	}
	if _, err := comm.WaitSome(t.Context()); !errors.Is(err, comm.ErrArgument) {
		t.Errorf("WaitSome: got %v, want ErrArgument", err)
	}
	if err := comm.WaitAll(t.Context()); err != nil {
		t.Errorf("WaitAll: %v", err)
	}
}

func TestWaitAnyAndWaitSomeEndWithTheirContext(t *testing.T) {
	inBubble(t, 1, func(ctx context.Context, c *comm.Comm) error {
		why := errors.New("had enough")
		short, cancel := context.WithCancelCause(ctx)
		go cancel(why)
		r := comm.Irecv(c, 0, 0, make([]int, 1))
		if _, _, err := comm.WaitAny(short, r); !errors.Is(err, why) {
			return fmt.Errorf("WaitAny: got %v, want %v", err, why)
		}
		if _, err := comm.WaitSome(short, r, r); !errors.Is(err, why) {
			return fmt.Errorf("WaitSome: got %v, want %v", err, why)
		}
		return errors.Join(comm.Send(ctx, c, 0, 0, []int{1}), second(r.Wait(ctx)))
	})
}

func TestWaitAllReturnsTheFirstErrorAndWaitsForAll(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			return errors.Join(comm.Send(ctx, c, 0, 0, []int{1, 2}), comm.Send(ctx, c, 0, 1, []int{3}))
		}
		x := make([]int, 1)
		last := comm.Irecv(c, 1, 1, x)
		err := comm.WaitAll(ctx, comm.Irecv(c, 1, 0, make([]int, 1)), comm.Irecv(c, 9, 0, x), last)
		if !errors.Is(err, comm.ErrTruncated) {
			return fmt.Errorf("got %v, want ErrTruncated", err)
		}
		if !last.Done() || x[0] != 3 {
			return fmt.Errorf("the last request: done %v, received %v", last.Done(), x)
		}
		return nil
	})
}

func TestTestMakesProgress(t *testing.T) {
	for _, n := range messageSizes {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			in := make([]int64, n)
			rs := []comm.Request{
				comm.Irecv(c, 1-c.Rank(), 0, in), comm.Isend(c, 1-c.Rank(), 0, integers[int64]().vector(c.Rank(), n)),
			}
			for i, r := range rs {
				for {
					st, done, err := r.Test()
					if err != nil {
						return err
					}
					if done {
						if i == 0 && st.Count() != n {
							return fmt.Errorf("status %+v, want %d elements", st, n)
						}
						break
					}
					runtime.Gosched()
				}
			}
			return equal("received", in, integers[int64]().vector(1-c.Rank(), n))
		})
	}
}

func TestCancelWithdrawsAReceiveThatHasNotMatched(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			return errors.Join(comm.Send(ctx, c, 0, 0, []int{5}), comm.Barrier(ctx, c))
		}
		early := comm.Irecv(c, 1, 7, make([]int, 1))
		synctest.Wait()
		if !early.Cancel() {
			return errors.New("a receive without a message was not cancelled")
		}
		if _, err := early.Wait(ctx); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("cancelled receive: got %v, want context.Canceled", err)
		}
		if early.Cancel() {
			return errors.New("cancelled twice")
		}
		x := make([]int, 1)
		if _, err := c.Probe(ctx, 1, 0); err != nil {
			return err
		}
		late := comm.Irecv(c, 1, 0, x) // its message is here
		if late.Cancel() {
			return errors.New("a receive with its message was cancelled")
		}
		if _, err := late.Wait(ctx); err != nil || x[0] != 5 {
			return fmt.Errorf("got %v, %v", x, err)
		}
		if s := comm.Isend(c, 0, 0, x); s.Cancel() {
			return errors.New("a send was cancelled")
		}
		return comm.Barrier(ctx, c)
	})
}

// Many goroutines may wait for one request.
func TestOneRequestManyWaiters(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			return comm.Send(ctx, c, 0, 0, []int{5})
		}
		r := comm.Irecv(c, 1, 0, make([]int, 1))
		errs, counts := make(chan error, 10), make(chan int, 10)
		for range cap(errs) {
			go func() {
				st, err := r.Wait(ctx)
				counts <- st.Count()
				errs <- err
			}()
		}
		reported := 0
		for range cap(errs) {
			reported += <-counts
			if err := <-errs; err != nil {
				return err
			}
		}
		return equal("elements told of", []int{reported}, []int{1})
	})
}
