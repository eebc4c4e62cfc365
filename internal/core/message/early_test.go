package message_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// One rank may use a Channel before the other has made it: what comes early
// waits for it.
func TestFramesForAChannelThatIsNotMadeYetWaitForIt(t *testing.T) {
	for _, size := range sizes {
		run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			if ch.Rank() == 0 {
				late := e.Open(7, nil)
				defer late.Close()
				eager := late.Isend(1, 3, mem.Bytes(pattern(size, 1)), false)
				announced := late.Isend(1, 4, mem.Bytes(pattern(size, 2)), true)
				if err := ch.Send(ctx, 1, 0, mem.Buffer{}, false); err != nil {
					return err
				}
				rd := round.Of(late)
				err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: int64(size)}, 0, false)
				rd.Isend(1, mem.Bytes(pattern(size, 3)))
				return errors.Join(err, rd.End(rd.Wait()), wait(ctx, e, eager), wait(ctx, e, announced))
			}
			if _, err := ch.Recv(ctx, 0, 0, mem.Buffer{}); err != nil { // all that went before is here
				return err
			}
			late := e.Open(7, []world.Rank{0, 1})
			defer late.Close()
			rd, got := round.Of(late), make([]byte, size)
			err := rd.Begin(ctx, &call.Fingerprint{Kind: calls.Bcast, Type: mem.U8, Count: int64(size)}, 0, false)
			rd.Irecv(0, mem.Bytes(got))
			if err := errors.Join(err, rd.End(rd.Wait())); err != nil {
				return err
			}
			if !bytes.Equal(got, pattern(size, 3)) {
				return fmt.Errorf("collective of %d bytes: wrong bytes", size)
			}
			for tag := 4; tag >= 3; tag-- {
				if _, err := late.Recv(ctx, 0, tag, mem.Bytes(got)); err != nil {
					return err
				}
				if !bytes.Equal(got, pattern(size, tag-2)) {
					return fmt.Errorf("message of %d bytes with tag %d: wrong bytes", size, tag)
				}
			}
			return nil
		})
	}
}

func TestRevocationOfAChannelThatIsNotMadeYetWaitsForIt(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		if ch.Rank() == 0 {
			late := e.Open(7, nil)
			late.Break("changed its mind")
			return ch.Send(ctx, 1, 0, mem.Buffer{}, true)
		}
		if _, err := ch.Recv(ctx, 0, 0, mem.Buffer{}); err != nil {
			return err
		}
		late := e.Open(7, nil)
		var revoked *liveness.RevokedError
		if !errors.As(late.Err(), &revoked) || revoked.Rank != 0 || revoked.Cause != "changed its mind" {
			return fmt.Errorf("got %v", late.Err())
		}
		return nil
	})
}

// What comes for a Channel that was closed here is dropped, and its sender's
// budget is not used up by it.
func TestFramesForAClosedChannelAreDropped(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		other := e.Open(7, nil)
		if ch.Rank() == 1 {
			other.Close()
			_, err := ch.Recv(ctx, 0, 0, mem.Buffer{})
			return err
		}
		const n, size = 200, 60 << 10 // three times the budget
		for i := range n {
			r := other.Isend(1, 0, mem.Bytes(pattern(size, 0)), false)
			synctest.Wait()
			e.Advance(true) // hears what the other has let go
			if !r.Done() {
				return fmt.Errorf("message %d waits for a receiver that has closed its Channel", i)
			}
		}
		return ch.Send(ctx, 1, 0, mem.Buffer{}, false)
	})
}
