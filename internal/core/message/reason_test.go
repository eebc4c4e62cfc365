package message_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/internal/boot"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
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

// Ranks 0 and 1 exchange messages; rank 2 waits for rank 1 alone, or for both, in one of these
// ways.
var waysToWait = map[string]func(ctx context.Context, ch *message.Channel) error{
	"recv": func(ctx context.Context, ch *message.Channel) error {
		_, err := ch.Recv(ctx, 1, 0, mem.Buffer{})
		return err
	},
	"ssend": func(ctx context.Context, ch *message.Channel) error { return ch.Send(ctx, 1, 0, mem.Buffer{}, true) },
	"probe": func(ctx context.Context, ch *message.Channel) error {
		_, _, err := ch.Probe(ctx, 1, 0, true, false)
		return err
	},
	"recv from any": func(ctx context.Context, ch *message.Channel) error {
		_, err := ch.Recv(ctx, message.Any, 0, mem.Buffer{})
		return err
	},
	"probe from any": func(ctx context.Context, ch *message.Channel) error {
		_, _, err := ch.Probe(ctx, message.Any, 0, true, true)
		return err
	},
	"iprobe":          func(ctx context.Context, ch *message.Channel) error { return probeInALoop(ch, 1) },
	"iprobe from any": func(ctx context.Context, ch *message.Channel) error { return probeInALoop(ch, message.Any) },
}

func probeInALoop(ch *message.Channel, src int) (err error) {
	for end := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(end); { // of the bubble's clock
		_, _, err = ch.Probe(context.Background(), src, 0, false, false)
	}
	return err
}

// A rank that waits for one that has closed a revoked Channel, and has not heard of the revocation
// yet, gets the reason of the revocation: whether it begins to wait before that, or afterwards, or
// while the Channel is revoked and still open there.
func TestWhoClosesARevokedChannelSaysWhy(t *testing.T) {
	for name, wait := range waysToWait {
		for _, when := range []string{"before", "while", "after"} {
			runConfig(t, 3, lateAt2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
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
					if when == "before" {
						if _, err := ch.Recv(ctx, 1, 0, mem.Buffer{}); err != nil {
							return err
						}
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
		runConfig(t, 3, lateAt2, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
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

func lateAt2(cfg *message.Config) {
	if cfg.Rank == 2 {
		cfg.Boot = &backwardBoot{Boot: cfg.Boot}
	}
}

func givenUpBy0(err error) error {
	var r *liveness.RevokedError
	if !errors.As(err, &r) || r.Rank != 0 || r.Cause != "had enough" {
		return fmt.Errorf("got %v, want the reason of rank 0", err)
	}
	return nil
}

// The reason is passed on, too, where the rank to blame is no member: it broke the communicator of
// which this one was made.
func TestAReasonOutsideTheChannelIsPassedOn(t *testing.T) {
	members, counters := []world.Rank{1, 2, 3}, []uint32{7, 7, 7}
	late := func(cfg *message.Config) {
		if cfg.Rank == 3 {
			cfg.Boot = &backwardBoot{Boot: cfg.Boot}
		}
	}
	runConfig(t, 4, late, func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
		switch ch.Rank() {
		case 1:
			made := e.OpenAs(liveness.NextID(members[0], counters[0]), members, counters)
			if _, err := made.Recv(ctx, 1, 0, mem.Buffer{}); !errors.Is(err, liveness.ErrRevoked) {
				return fmt.Errorf("got %v, want that rank 2 has withdrawn", err)
			}
			made.Close()
			if err := ch.Send(ctx, 3, 0, mem.Buffer{}, false); err != nil {
				return err
			}
		case 2:
			e.Live.Withdraw(counters[1], liveness.Reason{Cause: "was eaten"})
		case 3:
			made := e.OpenAs(liveness.NextID(members[0], counters[0]), members, counters)
			defer made.Close()
			if _, err := ch.Recv(ctx, 1, 0, mem.Buffer{}); err != nil {
				return err
			}
			var why *liveness.RevokedError
			if _, err := made.Recv(ctx, 0, 0, mem.Buffer{}); !errors.As(err, &why) ||
				!strings.HasSuffix(why.Cause, "was eaten") {
				return fmt.Errorf("got %v, want why rank 2 has withdrawn", err)
			}
			for other := range 3 {
				if err := ch.Send(ctx, other, 1, mem.Buffer{}, false); err != nil {
					return err
				}
			}
			return nil
		}
		_, err := ch.Recv(ctx, 3, 1, mem.Buffer{}) // nobody leaves, and makes the launcher speak
		return err
	})
}
