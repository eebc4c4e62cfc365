package progress

import (
	"context"
	"time"
)

// A Check is called by a goroutine that has waited for CheckAfter, without the lock. next is the
// time until the next call, 0 for none in this wait. An error ends the wait.
type Check func(waited time.Duration) (next time.Duration, err error)

// CheckAfter is the time that a goroutine waits before the first Check of its context.
const CheckAfter = time.Millisecond

type checkKey struct{}

// WithCheck returns a context whose waits ask c, on the goroutine of the call: so an interpreter's
// thread does its duties while it waits. c may send and receive. An error ends the wait as the end
// of the context does. Work on goroutines of the library asks on those goroutines.
func WithCheck(ctx context.Context, c Check) context.Context {
	return context.WithValue(ctx, checkKey{}, c)
}

// A checking is the state of a wait for the Check of its context. The Check is looked up when the
// wait first blocks, so shorter waits have no cost.
type checking struct {
	known bool
	check Check
	since time.Time // when the Check was looked up
	next  time.Time // when the Check is due
	timer *time.Timer
	due   bool
}

func (k *checking) look(ctx context.Context) {
	if k.known {
		return
	}
	k.known = true
	if k.check, _ = ctx.Value(checkKey{}).(Check); k.check != nil {
		k.since = time.Now()
		k.next = k.since.Add(CheckAfter)
	}
}

// after returns a channel that delivers when the Check is to be asked, nil if there is none.
func (k *checking) after(ctx context.Context, w *Waiter) <-chan time.Time {
	k.look(ctx)
	if k.check == nil {
		return nil
	}
	if k.timer == nil {
		if w.checkTimer == nil {
			w.checkTimer = time.NewTimer(time.Until(k.next))
		} else {
			w.checkTimer.Reset(time.Until(k.next))
		}
		k.timer = w.checkTimer
	}
	return k.timer.C
}

// rings reports, to a driver that never blocks, whether the Check is due.
func (k *checking) rings(ctx context.Context) bool {
	k.look(ctx)
	k.due = k.check != nil && time.Now().After(k.next)
	return k.due
}

// ask asks the Check. Another goroutine may drive meanwhile.
func (p *Engine) ask(w *Waiter, k *checking) error {
	p.release(w)
	p.PassDrive()
	p.Unlock()
	defer p.Lock()
	k.stop()
	next, err := k.check(time.Since(k.since))
	if next <= 0 {
		k.check = nil
	}
	k.next, k.due = time.Now().Add(next), false
	return err
}

func (k *checking) stop() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}
