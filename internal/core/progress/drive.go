package progress

import (
	"context"
	"runtime"
	"slices"
	"time"

	"gompi/internal/world"
)

// PollsPerCheck is the number of polls of a goroutine between two looks at its context.
const PollsPerCheck = 64

// pollsPerLook is the number of polls of a driver that never blocks between two looks at the clock.
const pollsPerLook = 4096

// Await returns when w is ready, or with the cause when ctx has ended, or with the error of its
// Check. The lock is held on entry and on return.
func (p *Engine) Await(ctx context.Context, w *Waiter) (err error) {
	var s stall
	defer s.stop()
	var k checking
	defer k.stop()
	w.since, w.polls = time.Time{}, 0
	for !w.ready && err == nil && ctx.Err() == nil {
		switch {
		case k.due:
			err = p.ask(w, &k)
		case p.callsBack(w):
			p.release(w)
			p.PassDrive()
			p.CallBack()
		case p.staysOff(w):
			p.release(w)
			p.PassDrive()
			if p.staysOff(w) { // else all waiters have waited for long by now, and w has not been given the drive
				p.block(ctx, w, &s, &k)
			}
		case p.mayTake(w):
			p.takeDrive(w)
			p.drive(ctx, w, &s, &k)
		default:
			p.block(ctx, w, &s, &k)
		}
	}
	p.release(w)
	p.PassDrive()
	if p.cfg.Sleeps != nil && !w.Background && !w.since.IsZero() {
		p.cfg.Sleeps.End(w.number, int64(time.Since(w.since)))
	}
	p.offer()
	if s.notified {
		w.owner.Ended()
	}
	if w.ready {
		return nil
	}
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// mayTake reports whether w has the drive, or takes it. After waiting for long in the foreground, w
// takes the drive from no other: the Parker has woken w in the driver's place, or a timer has. In
// the background, where collectives wait as long as a slow link needs, w takes the drive from a
// parked driver: w runs already, and the driver would first have to get a processor (gompi-bench
// ddp -bucket 4M -busy 1700ms deep, np=2 on a link of 1 Gbit/s: 69 % hidden without, 78 with).
func (p *Engine) mayTake(w *Waiter) bool {
	d := p.driver
	return d == w || d == nil || d.parked && (w.Background || !w.waitsLong()) || d.waitsLong() && !w.waitsLong()
}

// drive polls until w is ready, ctx ends, w's Check is due, w has to call back or loses the drive.
func (p *Engine) drive(ctx context.Context, w *Waiter, s *stall, k *checking) {
	slept, timed := false, false
	for polls, idle := 1, 0; !w.ready && p.driver == w && !p.staysOff(w) && !k.due && !p.callsBack(w); polls++ {
		w.polls++
		hint := p.hint(w)
		if timed { // the deadline may be any Waiter's
			hint, timed = world.None, false
		}
		if p.cfg.Source.Poll(hint) > 0 {
			idle, slept = 0, false
		} else {
			idle++
		}
		if polls%PollsPerCheck == 0 && ctx.Err() != nil {
			return
		}
		if polls%pollsPerLook == 0 {
			if s.rings() {
				p.notice(w, s)
			}
			if k.rings(ctx) {
				return
			}
		}
		spin, yields := p.spinBudget(w)
		switch {
		case w.ready: // notice has ended the wait
		case p.woken:
			// A woken goroutine mostly runs on this processor, once the driver yields.
			p.woken = false
			p.unlockWhile(runtime.Gosched)
		case idle <= spin:
			if p.Wanted() || letsOthersRun(idle) {
				p.unlockWhile(runtime.Gosched)
			}
		case idle <= spin+yields:
			if idle == spin+1 {
				p.stopSpinning()
			}
			p.unlockWhile(p.cfg.Yield)
		case ctx.Err() != nil:
			return
		case !slept && p.sleepsInKernel():
			if p.cfg.Source.Arm() && !p.sleepInKernel(w) {
				slept = true // in vain: the next sleep is Go's
			} else {
				idle = 0
			}
		case p.arm():
			w.parked = true
			if p.block(ctx, w, s, k) {
				idle, slept = 0, false
			} else { // time or the context ended the sleep, and a single poll of all is enough
				timed = true
			}
		case p.Wanted(): // there is something to poll for
			p.unlockWhile(runtime.Gosched)
		}
	}
}

// letsOthersRun reports whether a driver that has polled idle times in vain lets other goroutines
// run: after 256 times, 512, 1024 and so on. A yield costs a driver called by C some 20 us, and
// wakes threads that may compete with the very rank that the driver waits for (LAMMPS's peptide,
// np=2: 2.03 s with a yield every 64 polls, 1.89 s with these).
func letsOthersRun(idle int) bool { return idle >= 256 && idle&(idle-1) == 0 }

// spinBudget returns the number of polls of w's goroutine in a row, and then with yields, before
// parking. In the background w spins only while a foreground goroutine has just begun to wait:
// otherwise the processors are left to goroutines that compute. The number of yields is the same:
// on busy processors a yield lasts, messages that came meanwhile are polled at once, and a driver
// that parks sooner is woken for each packet (gompi-bench ddp -busy 1700ms deep, np=2 on two hosts,
// a link of 1 Gbit/s, PyTorch over gompi: 72 to 79 % hidden, with one yield 53 to 62).
func (p *Engine) spinBudget(w *Waiter) (spin, yields int) {
	if w.Background && !p.awaited() {
		return 0, p.yields
	}
	return p.spin, p.yields
}

// awaited reports whether a foreground goroutine sleeps that has not waited for long. A long wait
// is mostly a server's wait for the next request, and no reason to spin.
func (p *Engine) awaited() bool {
	if p.foreground == 0 {
		return false
	}
	now := time.Now()
	if now.Sub(p.began) >= grace {
		return false // decided at once, however many wait
	}
	return slices.ContainsFunc(p.sleepers, func(s *Waiter) bool { return !s.Background && !s.waitsLongAt(now) })
}

// hint returns the rank that Poll looks at first: the one that w, or else a sleeper, waits for.
func (p *Engine) hint(w *Waiter) world.Rank {
	if w.Hint < 0 {
		for _, s := range p.sleepers {
			if s.Hint >= 0 {
				return s.Hint
			}
		}
	}
	return w.Hint
}

// staysOff reports whether w is the background's Waiter and should not drive: nothing is pending,
// or another goroutine waits, not for long yet, and can drive.
func (p *Engine) staysOff(w *Waiter) bool { return w == p.background && (p.awaited() || !p.busy()) }

// busy reports whether something needs polling although no goroutine waits.
func (p *Engine) busy() bool {
	return p.pending > 0 || p.overdue || p.cfg.Source.Pending()
}

// takeDrive makes w the driver. A parked driver loses the drive, and so does a driver that has
// waited for long: such a driver polls mostly for others, each of which it has to wake.
func (p *Engine) takeDrive(w *Waiter) {
	if old := p.driver; old != nil && old != w && old.parked {
		p.disarm(old)
		old.parked = false
	}
	p.driver = w
	if w != p.background {
		p.overdue = false
	}
}

// release takes the drive from w, if w is the driver: a sleeper may have been made the parked
// driver just when something else woke it.
func (p *Engine) release(w *Waiter) {
	if p.driver == w {
		p.driver = nil
	}
}

// PassDrive finds a driver if the Engine needs one and has none. It wakes a parked driver if later
// posts or polls have left something to poll.
func (p *Engine) PassDrive() {
	if d := p.driver; d != nil {
		if d.parked && !p.cfg.Source.Arm() {
			p.wake(d) // there is something to poll that came after d went to sleep
		}
		return
	}
	next := p.successor()
	if next != nil && next.waitsLong() && !p.busy() {
		p.startGrace(grace)
		return
	}
	p.hand(next)
}

// hand gives the drive to a sleeper, if there is any: parked, if possible.
func (p *Engine) hand(next *Waiter) {
	switch {
	case next == nil:
	case next.parkable && !p.deadlineFirst(next) && p.armFor(next):
		p.driver, next.parked = next, true
	default:
		p.wake(next)
	}
}

// successor returns the sleeper that drives next: a sleeper that has not waited for long, else
// the background's Waiter if something is pending, else a sleeper that has.
func (p *Engine) successor() *Waiter {
	var long *Waiter
	var now time.Time // read once: each look at the clock takes 40 ns, and there may be many sleepers
	if len(p.sleepers) > 0 {
		now = time.Now()
	}
	for _, w := range p.sleepers {
		switch {
		case w == p.background:
		case !w.waitsLongAt(now):
			return w
		case long == nil:
			long = w
		}
	}
	switch {
	case !p.busy():
		if long == nil && p.deferred > 0 {
			p.startGrace(grace << p.graceInVain)
		}
		return long
	case p.closes:
		return nil
	case p.background == nil:
		p.background, p.backgroundEnded = new(Waiter), make(chan struct{})
		p.background.Init(nil)
		p.background.Background = true
		go p.runBackground(p.background) // ends with Close
		return nil
	case p.background.asleep:
		return p.background
	}
	return nil // the background runs, and is about to look whether the Engine needs it
}

func (p *Engine) runBackground(w *Waiter) {
	defer close(p.backgroundEnded)
	p.Lock()
	defer p.Unlock()
	p.Await(context.Background(), w) // never fails: this context never ends
}

// arm prepares everything for a driver that parks; false means: poll first.
func (p *Engine) arm() bool {
	if !p.cfg.Source.Arm() {
		return false
	}
	p.cfg.Parker.Arm()
	return true
}

// armFor is arm for a parked driver, which may sleep in the kernel.
func (p *Engine) armFor(w *Waiter) bool {
	if w.inKernel {
		return p.cfg.Source.Arm()
	}
	return p.arm()
}

// disarm undoes armFor.
func (p *Engine) disarm(w *Waiter) {
	if !w.inKernel {
		p.cfg.Parker.Disarm()
	}
}

// deadlineFirst reports whether the Source's deadline comes before the time at which w wakes.
func (p *Engine) deadlineFirst(w *Waiter) bool {
	d := p.cfg.Source.Deadline()
	return d > 0 && (w.due.IsZero() || time.Now().Add(d).Before(w.due))
}

// block sleeps: as the parked driver if w.parked, else until another driver makes w ready or
// passes the drive to w. The background receives from the Parker in both cases, so that it can be
// made the parked driver while asleep. woken is false if time or the context ended the sleep.
func (p *Engine) block(ctx context.Context, w *Waiter, s *stall, k *checking) (woken bool) {
	p.goToSleep(w, w.parked || w == p.background)
	var ring <-chan struct{}
	if w.parkable {
		ring = p.cfg.Parker.C()
	}
	due, check, stalled := p.deadline(w), k.after(ctx, w), s.after(p, w)
	p.Unlock()
	rang := false
	select {
	case <-ring:
		rang, woken = true, true
	case <-w.wake:
		woken = true
	case <-due:
	case <-ctx.Done():
	case <-check:
		k.due = true
	case <-stalled:
		s.fired = true
	}
	p.Lock()
	p.wakeUp(w, rang)
	p.notice(w, s)
	return woken
}

// goToSleep makes w a sleeper. parkable means that the Parker wakes w.
func (p *Engine) goToSleep(w *Waiter, parkable bool) {
	w.asleep, w.parkable = true, parkable
	if w.since.IsZero() {
		w.since = time.Now()
		if !w.Background {
			p.began = w.since
			if p.cfg.Sleeps != nil {
				w.number = p.cfg.Sleeps.Begin()
			}
		}
	}
	p.sleepers = append(p.sleepers, w)
	if !w.Background {
		p.foreground++
	}
}

// wakeUp undoes goToSleep. rang means that the Parker has woken w.
func (p *Engine) wakeUp(w *Waiter, rang bool) {
	w.asleep, w.parkable = false, false
	i := slices.Index(p.sleepers, w)
	p.sleepers = slices.Delete(p.sleepers, i, i+1)
	if !w.Background {
		p.foreground--
	}
	switch {
	case w.parked:
		w.parked = false
		p.disarm(w)
	case rang && p.driver != nil && p.driver.parked:
		p.wake(p.driver) // the Parker's wake-up was for the driver that is parked now
	}
	if rang || w.inKernel {
		p.passOn()
	}
}

// passOn is called by a goroutine whose thread the kernel may have woken instead of another's. It
// interrupts the Sleeper again until all interrupted goroutines have woken.
func (p *Engine) passOn() {
	switch {
	case p.sleeper == nil:
	case slices.ContainsFunc(p.sleepers, func(s *Waiter) bool { return s.called }):
		p.sleeper.Interrupt()
	default:
		p.sleeper.EndInterrupt()
	}
}

// inKernelMost is the time for which a driver blocks its thread before it sleeps as goroutines do.
// The end of a context during this time is noticed only at its end.
const inKernelMost = time.Millisecond

// sleepsInKernel reports whether a driver can block its thread, and the deadline allows this.
func (p *Engine) sleepsInKernel() bool {
	if p.sleeper == nil {
		return false
	}
	d := p.cfg.Source.Deadline()
	return d == 0 || d > inKernelMost
}

// sleepInKernel blocks the thread of w's goroutine, the driver, until there is something to poll
// or w is woken, for inKernelMost at most. rang reports whether it was woken.
func (p *Engine) sleepInKernel(w *Waiter) (rang bool) {
	w.parked, w.inKernel = true, true
	p.goToSleep(w, true)
	w.due = time.Now().Add(inKernelMost)
	p.Unlock()
	rang = p.sleeper.Sleep(inKernelMost)
	p.Lock()
	p.wakeUp(w, rang)
	w.inKernel, w.called = false, false
	return rang
}

// deadline returns a channel that delivers at the Source's deadline if w may be the parked driver,
// else nil; nil also if there is no deadline.
func (p *Engine) deadline(w *Waiter) <-chan time.Time {
	w.due = time.Time{}
	if !w.parkable {
		return nil
	}
	d := p.cfg.Source.Deadline()
	if d == 0 {
		return nil
	}
	w.due = time.Now().Add(d)
	if w.dueTimer == nil {
		w.dueTimer = time.NewTimer(d)
	} else {
		w.dueTimer.Reset(d)
	}
	return w.dueTimer.C
}
