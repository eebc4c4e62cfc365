package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gompi/comm"
)

// What functions of the user's may do while they combine: nothing of the engine's is locked.

// everyWay is how ranks are connected, as far as functions are concerned.
var everyWay = map[string]func(t testing.TB, n int, fn rankFunc) []error{
	"inproc": func(t testing.TB, n int, fn rankFunc) []error { return newRig(n).run(t.Context(), fn) },
	"tcp":    overTCP,
	"memory": overMemory,
}

// An echo answers on a Comm of its own, in every rank, so that a rank can be asked while it
// combines.
type echo struct {
	twin  *comm.Comm
	ended chan error
}

const (
	questionTag = iota
	replyTag
)

func newEcho(ctx context.Context, c *comm.Comm) (*echo, error) {
	twin, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	e := &echo{twin, make(chan error, 1)}
	go func() { e.ended <- e.serve(ctx) }()
	return e, nil
}

// serve ends with a rank's question to itself.
func (e *echo) serve(ctx context.Context) error {
	for v := []int{0}; ; {
		st, err := comm.Recv(ctx, e.twin, comm.AnySource, questionTag, v)
		if err != nil || st.Source == e.twin.Rank() {
			return err
		}
		if err := comm.Send(ctx, e.twin, st.Source, replyTag, v); err != nil {
			return err
		}
	}
}

// ask asks the next rank.
func (e *echo) ask(ctx context.Context) error {
	next, v := (e.twin.Rank()+1)%e.twin.Size(), []int{7}
	if err := comm.Send(ctx, e.twin, next, questionTag, v); err != nil {
		return err
	}
	_, err := comm.Recv(ctx, e.twin, next, replyTag, v)
	return err
}

// close ends the echo when no rank asks any more, and the twin when all echoes have ended:
// one that listens to all fails where all others have closed it.
func (e *echo) close(ctx context.Context) error {
	err := comm.Barrier(ctx, e.twin)
	if err == nil {
		err = comm.Send(ctx, e.twin, e.twin.Rank(), questionTag, []int{0})
	}
	return errors.Join(err, <-e.ended, comm.Barrier(ctx, e.twin), e.twin.Close(ctx))
}

// A function may call comm, on another Comm, and may wait for a goroutine that does.
func TestFunctionsMayUseOtherComms(t *testing.T) {
	for way, run := range everyWay {
		for _, n := range []int{3, 200_000} { // the latter in chunks, on request
			t.Run(fmt.Sprint(way, n), func(t *testing.T) {
				t.Parallel()
				err := errors.Join(run(t, 3, func(ctx context.Context, c *comm.Comm) error {
					ctx, cancel := context.WithTimeout(ctx, testTimeout)
					defer cancel()
					return composeAsking(ctx, c, n)
				})...)
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func composeAsking(ctx context.Context, c *comm.Comm, n int) error {
	e, err := newEcho(ctx, c)
	if err != nil {
		return err
	}
	var asked error
	inside := func(acc, in []affine) {
		compose(acc, in)
		outside := make(chan error)
		go func() { outside <- e.ask(ctx) }()
		asked = errors.Join(asked, <-outside, e.ask(ctx))
	}
	v := affineOf(c.Rank(), n)
	err = comm.AllreduceFunc(ctx, c, v, v, inside)
	if err = errors.Join(err, asked); err != nil {
		return err
	}
	return errors.Join(equal("recv", v, composed(c.Size(), n)), e.close(ctx))
}

// A function that panics, or ends its goroutine, breaks its Comm on all ranks and nothing
// else: a caller that recovers can use other Comms and close this one.
func TestFunctionsThatPanicBreakTheirComm(t *testing.T) {
	ends := map[string]func(){"panics": func() { panic("a bug") }, "exits": runtime.Goexit}
	for way, run := range everyWay {
		for end, f := range ends {
			for _, queued := range []bool{false, true} {
				t.Run(fmt.Sprint(way, end, queued), func(t *testing.T) {
					t.Parallel()
					err := errors.Join(run(t, 3, func(ctx context.Context, c *comm.Comm) error {
						return endIn(ctx, c, f, queued)
					})...)
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// endIn has end called in rank 0's function, which combines on every way. If queued, its
// call waits for its turn behind another.
func endIn(ctx context.Context, world *comm.Comm, end func(), queued bool) error {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	c, err := world.Dup(ctx)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var before comm.Request
	if queued {
		before = c.Ibarrier()
	}
	f := func(acc, in []affine) { compose(acc, in) }
	if c.Rank() == 0 {
		f = func(acc, in []affine) { end() }
	}
	outcome := make(chan error, 1)
	go func() { // which a test that exits must not be
		err := errUnwound
		defer func() {
			recover()
			outcome <- err
		}()
		v := affineOf(c.Rank(), 1000)
		err = comm.AllreduceFunc(ctx, c, v, v, f)
	}()
	err = <-outcome
	if c.Rank() == 0 && err != errUnwound {
		return fmt.Errorf("got %v, want the caller's goroutine to unwind", err)
	}
	if c.Rank() == 0 || err == nil { // which needs nothing of rank 0's result
		err = comm.Barrier(ctx, c)
	}
	if !errors.Is(err, comm.ErrRevoked) || !strings.Contains(err.Error(), "rank 0 ") ||
		!strings.Contains(err.Error(), "allreduce(") {
		return fmt.Errorf("got %v, want %v that names rank 0 and allreduce", err, comm.ErrRevoked)
	}
	if queued {
		if _, err := before.Wait(ctx); err != nil && !errors.Is(err, comm.ErrRevoked) {
			return err
		}
	}
	if err := c.Close(ctx); ctx.Err() != nil {
		return fmt.Errorf("close: %v, %w", err, ctx.Err())
	}
	return comm.Barrier(ctx, world)
}

var errUnwound = errors.New("the call did not return")
