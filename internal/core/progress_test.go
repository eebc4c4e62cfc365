package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gompi/comm"
)

// awaitDone waits, outside comm, until another rank of the test says so.
func awaitDone(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute,
		errors.New("what was sent does not arrive while its sender computes"))
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// What a call has sent arrives although its sender does not call comm again.
func TestWhatWasSentArrivesWhileTheSenderComputes(t *testing.T) {
	x := []int64{1}
	for name, send := range map[string]func(ctx context.Context, c *comm.Comm) error{
		"sends in a row": func(ctx context.Context, c *comm.Comm) error {
			for range 3 {
				if err := comm.Send(ctx, c, 1, 0, x); err != nil {
					return err
				}
			}
			return nil
		},
		"isends in a row": func(ctx context.Context, c *comm.Comm) error {
			for range 3 {
				comm.Isend(c, 1, 0, x)
			}
			return nil
		},
		"sends beside an outstanding receive": func(ctx context.Context, c *comm.Comm) error {
			comm.Irecv(c, 1, 7, make([]int64, 1))
			time.Sleep(20 * time.Millisecond) // for the background to fall asleep: nothing tells
			for range 3 {
				if err := comm.Send(ctx, c, 1, 0, x); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			errs := overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
				if c.Rank() == 0 {
					if err := send(ctx, c); err != nil {
						return err
					}
					return awaitDone(ctx, done)
				}
				defer close(done)
				for range 3 {
					if _, err := comm.Recv(ctx, c, 0, 0, make([]int64, 1)); err != nil {
						return err
					}
				}
				return nil
			})
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBcastsInARowArriveWhileTheRootComputes(t *testing.T) {
	done := make(chan struct{})
	errs := overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for range 3 {
			if err := comm.Bcast(ctx, c, 0, make([]int64, 4)); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			return awaitDone(ctx, done)
		}
		close(done)
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
