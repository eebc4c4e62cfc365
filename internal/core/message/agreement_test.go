package message_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/internal/boot"
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
)

// callOnly makes a call that sends nothing.
func callOnly(ctx context.Context, rd *round.Round, f call.Fingerprint) error {
	return errors.Join(rd.Begin(ctx, &f, 0, false), rd.End(nil))
}

// exchange makes a call in which two ranks send each other n bytes.
func exchange(ctx context.Context, rd *round.Round, n int) error {
	if err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Allgather, Count: int64(n)}, 0, false); err != nil {
		return err
	}
	rd.Irecv(1-rd.Rank(), mem.Bytes(make([]byte, n)))
	rd.Isend(1-rd.Rank(), mem.Bytes(make([]byte, n)))
	return rd.End(rd.Wait())
}

// A call that differs and of which nothing is sent is found by what is sent next, or in the
// end, however many calls are between: by its number, if not too many.
func TestCallsWithoutMessagesAreComparedByLaterOnes(t *testing.T) {
	end := func(ctx context.Context, rd *round.Round) error { return rd.Part(ctx) }
	for _, then := range []func(ctx context.Context, rd *round.Round) error{
		func(ctx context.Context, rd *round.Round) error { return exchange(ctx, rd, 8) },
		func(ctx context.Context, rd *round.Round) error { return exchange(ctx, rd, 1<<20) },
		end,
	} {
		for between, want := range map[int]string{1: "collective 1: ", 30: "collective 1: ", 200: "too long ago"} {
			run(t, 2, func(ctx context.Context, _ *message.Engine, ch *message.Channel) error {
				rd := round.Of(ch)
				err := callOnly(ctx, rd, call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Root: int32(ch.Rank())})
				for range between {
					err = errors.Join(err, callOnly(ctx, rd, call.Fingerprint{Kind: calls.Bcast, Type: mem.U8}))
				}
				if err != nil {
					return err
				}
				if err = then(ctx, rd); !errors.Is(err, liveness.ErrMismatch) || !strings.Contains(err.Error(), want) {
					return fmt.Errorf("after %d calls more: got %v, want a mismatch with %q", between, err, want)
				}
				return nil
			})
		}
	}
}

// Who has closed does not answer any more, and is not waited for.
func TestCallsThatDifferedFromThoseOfARankThatClosed(t *testing.T) {
	closedAfterDiffering(t, nil, liveness.ErrMismatch, "too long ago")
}

// Who has closed may have done so because a third rank found what differs: its finding comes
// from the launcher, and later.
func TestCallsThatDifferedAsTheLauncherSays(t *testing.T) {
	finding := append(make([]byte, 9), "what a third rank found"...)
	closedAfterDiffering(t, finding, liveness.ErrRevoked, "what a third rank found")
}

// closedAfterDiffering has rank 0 call another collective than rank 1, send a message of the
// next one, and close. The launcher of rank 1 says a finding then, too late.
func closedAfterDiffering(t *testing.T, finding []byte, want error, text string) {
	const id = 2
	boots := make([]boot.Boot, 2)
	slow := func(cfg *message.Config) {
		boots[cfg.Rank] = cfg.Boot
		if cfg.Rank == 1 {
			cfg.Boot = boot.Late(cfg.Boot, 50*time.Millisecond)
		}
	}
	runConfig(t, 2, slow, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		sub := e.Open(id, nil)
		defer sub.Close()
		rd := round.Of(sub)
		if err := callOnly(ctx, rd, call.Fingerprint{Kind: calls.Bcast, Type: mem.U8,
			Root: int32(ch.Rank())}); err != nil {
			return err
		}
		if ch.Rank() == 0 {
			err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8}, 0, false)
			if err == nil {
				rd.Isend(1, mem.Bytes(make([]byte, 8)))
				err = rd.End(rd.Wait())
			}
			sub.Close()
			if finding != nil {
				err = errors.Join(err, boots[0].Revoke(id, finding))
			}
			return errors.Join(err, ch.Send(ctx, 1, 1, mem.Buffer{}, false))
		}
		if _, err := ch.Recv(ctx, 0, 1, mem.Buffer{}); err != nil {
			return err
		}
		if err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8}, 0, false); err != nil {
			return err
		}
		rd.Irecv(0, mem.Bytes(make([]byte, 8)))
		if err := rd.End(rd.Wait()); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("got %v, want %v with %q", err, want, text)
		}
		return nil
	})
}
