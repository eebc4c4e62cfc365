package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// callOnly makes a call that sends nothing.
func callOnly(ctx context.Context, rd *engine.Round, call engine.Call) error {
	return errors.Join(rd.Begin(ctx, call, 0, false), rd.End())
}

// exchange makes a call in which two ranks send each other n bytes.
func exchange(ctx context.Context, rd *engine.Round, n int) error {
	if err := rd.Begin(ctx, engine.Call{Kind: engine.Allgather, Count: int64(n)}, 0, false); err != nil {
		return err
	}
	rd.Irecv(1-rd.Rank(), mem.Bytes(make([]byte, n)))
	rd.Isend(1-rd.Rank(), mem.Bytes(make([]byte, n)))
	return errors.Join(rd.Wait(), rd.End())
}

// A call that differs and of which nothing is sent is found by what is sent next, or in the
// end, however many calls are between: by its number, if not too many.
func TestCallsWithoutMessagesAreComparedByLaterOnes(t *testing.T) {
	end := func(ctx context.Context, rd *engine.Round) error { return rd.Part(ctx) }
	for _, then := range []func(ctx context.Context, rd *engine.Round) error{
		func(ctx context.Context, rd *engine.Round) error { return exchange(ctx, rd, 8) },
		func(ctx context.Context, rd *engine.Round) error { return exchange(ctx, rd, 1<<20) },
		end,
	} {
		for between, want := range map[int]string{1: "collective 1: ", 30: "collective 1: ", 200: "too long ago"} {
			run(t, 2, func(ctx context.Context, _ *engine.Engine, ch *engine.Channel) error {
				rd := ch.Round()
				err := callOnly(ctx, rd, engine.Call{Kind: engine.Bcast, Type: mem.U8, Root: int32(ch.Rank())})
				for range between {
					err = errors.Join(err, callOnly(ctx, rd, engine.Call{Kind: engine.Bcast, Type: mem.U8}))
				}
				if err != nil {
					return err
				}
				if err = then(ctx, rd); !errors.Is(err, engine.ErrMismatch) || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("after %d calls more: got %v, want a mismatch with %q", between, err, want)
				}
				return nil
			})
		}
	}
}

// Who has closed does not answer any more, and is not waited for.
func TestCallsThatDifferedFromThoseOfARankThatClosed(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
		sub := e.Open(2, nil)
		defer sub.Close()
		rd := sub.Round()
		if err := callOnly(ctx, rd, engine.Call{Kind: engine.Bcast, Type: mem.U8, Root: int32(ch.Rank())}); err != nil {
			return err
		}
		if ch.Rank() == 0 { // sends a second one, and closes
			err := rd.Begin(ctx, engine.Call{Kind: engine.Bcast, Type: mem.U8}, 0, false)
			if err == nil {
				rd.Isend(1, mem.Bytes(make([]byte, 8)))
				err = errors.Join(rd.Wait(), rd.End())
			}
			sub.Close()
			return errors.Join(err, ch.Send(ctx, 1, 1, mem.Buffer{}, false))
		}
		if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); err != nil {
			return err
		}
		if err := rd.Begin(ctx, engine.Call{Kind: engine.Bcast, Type: mem.U8}, 0, false); err != nil {
			return err
		}
		rd.Irecv(0, mem.Bytes(make([]byte, 8)))
		if err := rd.Wait(); !errors.Is(err, engine.ErrMismatch) {
			return fmt.Errorf("got %v, want a mismatch", err)
		}
		rd.End()
		return nil
	})
}
