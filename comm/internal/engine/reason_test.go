package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gompi/comm/internal/engine"
	"gompi/internal/boot"
	"gompi/internal/mem"
)

// A backwardBoot hears of revocations as late as it may: just before its question about a rank is
// answered.
type backwardBoot struct {
	boot.Boot
	held []boot.Event
}

func (b *backwardBoot) Events() (now []boot.Event) {
	for _, ev := range b.Boot.Events() {
		switch ev.Kind {
		case boot.Revoked:
			b.held = append(b.held, ev)
			continue
		case boot.Left:
			now = append(now, b.held...)
		}
		now = append(now, ev)
	}
	return now
}

// Ranks 0 and 1 exchange messages; rank 2 waits for rank 1 alone, in one of these ways.
var waysToWait = map[string]func(ctx context.Context, ch *engine.Channel) error{
	"recv": func(ctx context.Context, ch *engine.Channel) error {
		_, err := ch.Recv(ctx, 1, 0, mem.Buffer{})
		return err
	},
	"ssend": func(ctx context.Context, ch *engine.Channel) error { return ch.Send(ctx, 1, 0, mem.Buffer{}, true) },
	"probe": func(ctx context.Context, ch *engine.Channel) error {
		_, _, err := ch.Probe(ctx, 1, 0, true, false)
		return err
	},
}

// A rank that waits for one that has closed a revoked Channel, and has not heard of the revocation
// yet, gets the reason of the revocation: whether it begins to wait before that, or afterwards, or
// while the Channel is revoked and still open there.
func TestWhoClosesARevokedChannelSaysWhy(t *testing.T) {
	for name, wait := range waysToWait {
		for _, when := range []string{"before", "while", "after"} {
			runConfig(t, 3, lateAt2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
				other := e.Open(2, nil)
				if when != "after" || ch.Rank() != 1 {
					defer other.Close()
				}
				switch ch.Rank() {
				case 0:
					time.Sleep(time.Second) // of the bubble's clock
					other.Break("had enough")
				case 1:
					_, err := other.Recv(ctx, 0, 0, mem.Buffer{})
					if err := givenUpBy0(err); err != nil {
						return err
					}
					if when != "while" {
						other.Close()
					}
					if err := ch.Send(ctx, 2, 0, mem.Buffer{}, false); err != nil || when == "after" {
						return err
					}
					_, err = ch.Recv(ctx, 2, 0, mem.Buffer{})
					return err
				case 2:
					if when != "before" {
						if _, err := ch.Recv(ctx, 1, 0, mem.Buffer{}); err != nil {
							return err
						}
					}
					if err := givenUpBy0(wait(ctx, other)); err != nil {
						return fmt.Errorf("%s, %s: %w", name, when, err)
					}
					if when != "after" { // then rank 1 has left
						return ch.Send(ctx, 1, 0, mem.Buffer{}, false)
					}
				}
				return nil
			})
		}
	}
}

// The same where the rank leaves the job with it.
func TestWhoLeavesBecauseOfARevocationSaysWhy(t *testing.T) {
	for name, wait := range waysToWait {
		runConfig(t, 3, lateAt2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
			switch ch.Rank() {
			case 0:
				time.Sleep(time.Second) // of the bubble's clock
				ch.Break("had enough")
			case 1:
				_, err := ch.Recv(ctx, 0, 0, mem.Buffer{})
				return givenUpBy0(err)
			case 2:
				if err := givenUpBy0(wait(ctx, ch)); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		})
	}
}

func lateAt2(cfg *engine.Config) {
	if cfg.Rank == 2 {
		cfg.Boot = &backwardBoot{Boot: cfg.Boot}
	}
}

func givenUpBy0(err error) error {
	var r *engine.RevokedError
	if !errors.As(err, &r) || r.Rank != 0 || r.Cause != "had enough" {
		return fmt.Errorf("got %v, want the reason of rank 0", err)
	}
	return nil
}
