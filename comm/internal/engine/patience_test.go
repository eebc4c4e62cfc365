package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// bounce sends an empty message to and fro.
func bounce(ctx context.Context, ch *engine.Channel, times int) error {
	for range times {
		if ch.Rank() == 0 {
			if err := ch.Send(ctx, 1, 0, mem.Buffer{}, false); err != nil {
				return err
			}
		}
		if _, err := ch.Recv(ctx, 1-ch.Rank(), 0, mem.Buffer{}); err != nil {
			return err
		}
		if ch.Rank() == 1 {
			if err := ch.Send(ctx, 0, 0, mem.Buffer{}, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ranks that wait judge now and then whether they may spin, and no oftener.
func TestPatienceIsJudgedAnewWhileRanksWait(t *testing.T) {
	const many = 1000 // round trips, some of which spin in vain
	run(t, 2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
		var asked atomic.Int32
		var room atomic.Bool
		e.SetPatience(1, 1, true, func() bool { asked.Add(1); return room.Load() }, 5*time.Second)
		for i, roomy := range []bool{false, true, false} {
			room.Store(roomy)
			if err := bounce(ctx, ch, many); err != nil {
				return err
			}
			if n := int(asked.Load()); n != i || e.Patient() == roomy {
				return fmt.Errorf("rank %d, before its time: asked %d times, spins %v", ch.Rank(), n, e.Patient())
			}
			time.Sleep(10 * time.Second) // in the bubble
			if err := bounce(ctx, ch, many); err != nil {
				return err
			}
			if n := int(asked.Load()); n != i+1 || e.Patient() != roomy {
				return fmt.Errorf("rank %d: asked %d times, spins %v, want %d, %v", ch.Rank(), n, e.Patient(), i+1, roomy)
			}
		}
		return nil
	})
}

// So does a rank that sleeps for long.
func TestPatienceIsJudgedAnewByALongWait(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
		if ch.Rank() == 0 {
			time.Sleep(12 * time.Second)
			return ch.Send(ctx, 1, 0, mem.Buffer{}, false)
		}
		e.SetPatience(1, 1, true, func() bool { return false }, 5*time.Second)
		time.Sleep(10 * time.Second)
		if _, err := ch.Recv(ctx, 0, 0, mem.Buffer{}); err != nil {
			return err
		}
		if e.Patient() {
			return errors.New("it spins")
		}
		return nil
	})
}

func TestWhoNeverSpinsJudgesNothing(t *testing.T) {
	run(t, 2, func(ctx context.Context, e *engine.Engine, ch *engine.Channel) error {
		e.SetPatience(0, 1, true, func() bool { panic("asked") }, 5*time.Second)
		time.Sleep(10 * time.Second)
		if err := bounce(ctx, ch, 200); err != nil || e.Patient() {
			return errors.Join(err, fmt.Errorf("spins %v", e.Patient()))
		}
		return nil
	})
}
