package engine

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"gompi/internal/seg"
	"gompi/transport"
)

// How waiting works.
//
// A goroutine that waits has a Waiter. At most one waiter drives: it polls the
// transports, on behalf of all. The ladder of a driver is: poll at once again
// (spin), poll after giving the processor away (yield), and when that brought
// nothing for long enough, park until the Parker says that there is something
// to poll. The others sleep until they are ready, or until the drive is handed
// to them.
//
// A parked driver can be robbed: a goroutine that begins to wait takes the drive
// from it, since polling costs a fraction of a wake-up. The robbed one stays
// asleep, and when the robber leaves, it is made the parked driver again
// without ever having run.
//
// While Isends or Irecvs are outstanding and nobody waits, one background
// goroutine drives. It is an ordinary waiter that never spins and whose
// condition never comes true before the Engine closes. For receives that messages
// come for without being asked it has no hurry: to put it where it hears of them
// and to wake it costs more than they do (see urgency.go).

type drivers struct {
	restless []transport.Restless
	driver   *Waiter
	sleepers []*Waiter
	bg       *Waiter
	bgEnded  chan struct{} // closed when the background waiter's goroutine ends
	loud     int           // sleepers that are not quiet
	vigils   []*Vigil      // collectives that wait for words
	pending  int           // Isends and Irecvs that are not complete, but for those of calm
	calm     int           // Irecvs of eager size
	late     bool          // calm ones are outstanding for so long that they count as pending
	timer    *time.Timer   // of grace, made once
	ticking  bool          // it runs
	roused   bool          // a poll made another goroutine runnable
}

// A Waiter is one goroutine's wait, for one or several requests.
type Waiter struct {
	ready atomic.Bool   // set under mu
	left  int           // requests that have to end before it is ready
	wake  chan struct{} // capacity 1
	hint  int           // world rank to poll first
	quiet bool          // in the background: never spins
	round *Round        // the collective waited for, for the stall notice
	vigil *Vigil        // the same, where no messages are sent
	timer *time.Timer   // of alarms, made once

	request  *Request // waited for, one of them, for the flight recorder; nil when it is done
	probed   *Channel // where a message is probed for
	recorded bool     // the wait is in the flight recorder
	ticket   seg.Ticket
	alarm    *time.Timer // of alarmClock, made once

	asleep   bool      // in sleepers
	parkable bool      // asleep, and listening to the Parker
	parked   bool      // asleep as the driver
	due      time.Time // when it wakes because a transport wants to be polled
}

func (e *Engine) newWaiter() *Waiter {
	if n := len(e.waiters); n > 0 {
		w := e.waiters[n-1]
		e.waiters = e.waiters[:n-1]
		return w
	}
	return &Waiter{wake: make(chan struct{}, 1), hint: -1}
}

func (e *Engine) freeWaiter(w *Waiter) {
	w.ready.Store(false)
	w.hint, w.left, w.round, w.vigil, w.quiet = -1, 0, nil, nil, false
	w.request, w.probed, w.recorded = nil, nil, false
	select {
	case <-w.wake:
	default:
	}
	e.waiters = append(e.waiters, w)
}

// rouse makes w ready.
func (e *Engine) rouse(w *Waiter) {
	if w == nil || w.ready.Load() {
		return
	}
	w.ready.Store(true)
	if w.asleep {
		e.prod(w)
	}
}

// prod wakes w's goroutine without making it ready.
func (e *Engine) prod(w *Waiter) {
	e.roused = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// await returns when w is ready, or with the cause when ctx has ended. The lock
// is held on entry and on return.
func (e *Engine) await(ctx context.Context, w *Waiter) error {
	var stall alarm
	defer stall.stop()
	for !w.ready.Load() && ctx.Err() == nil {
		switch {
		case e.rests(w):
			e.release(w)
			e.handOn()
			e.block(ctx, w, &stall)
		case e.driver == nil || e.driver == w || e.driver.parked:
			e.rob(w)
			e.drive(ctx, w, &stall)
		default:
			e.block(ctx, w, &stall)
		}
	}
	e.release(w)
	e.handOn()
	e.unrecord(w)
	if w.ready.Load() {
		return nil
	}
	return context.Cause(ctx)
}

// release takes the drive from w, if it has it. A sleeper can have been made the
// parked driver at the very moment in which something else woke it.
func (e *Engine) release(w *Waiter) {
	if e.driver == w {
		e.driver = nil
	}
}

// rests reports whether w is the background waiter and should not drive: there
// is nothing to drive for, or somebody else is there to do it.
func (e *Engine) rests(w *Waiter) bool {
	return w == e.bg && (e.loud > 0 || !e.busy())
}

// busy reports whether something is under way that needs polling even if nobody
// waits for it.
func (e *Engine) busy() bool {
	return e.pending > 0 || e.late || !e.suspects.Empty() || e.unsent()
}

// unsent reports whether a transport has something that needs Poll to leave.
func (e *Engine) unsent() bool {
	for _, t := range e.restless {
		if t.Pending() {
			return true
		}
	}
	return false
}

// deadline returns how long a parked driver may sleep, 0 for any time.
func (e *Engine) deadline() (d time.Duration) {
	for _, t := range e.restless {
		if n := time.Duration(t.Deadline()); n > 0 && (d == 0 || n < d) {
			d = n
		}
	}
	if !e.suspects.Empty() {
		if n := max(time.Until(e.suspects.Front().due), 1); d == 0 || n < d {
			d = n
		}
	}
	return d
}

// rob makes w the driver, in the place of a parked one if there is.
func (e *Engine) rob(w *Waiter) {
	if old := e.driver; old != nil && old != w {
		e.cfg.Parker.Disarm()
		old.parked = false
	}
	e.driver = w
	if w != e.bg {
		e.late = false
	}
}

// handOn finds a driver when there is none and there is need of one.
func (e *Engine) handOn() {
	if d := e.driver; d != nil {
		if d.parked && !e.armTransports() {
			e.prod(d) // there is work that it did not know of when it went to sleep
		}
		return
	}
	next := e.successor()
	switch {
	case next == nil:
	case next.parkable && !e.sooner(next) && e.arm():
		e.driver, next.parked = next, true
	default:
		e.prod(next)
	}
}

// successor returns a sleeper to drive next: the background waiter only if
// there is no other, and only if something is outstanding.
func (e *Engine) successor() *Waiter {
	for _, w := range e.sleepers {
		if w != e.bg {
			return w
		}
	}
	if !e.busy() {
		e.tick()
		return nil
	}
	if e.bg == nil {
		e.bg = e.newWaiter()
		e.bg.quiet = true
		e.bgEnded = make(chan struct{})
		go e.background(e.bg) // ends when the Engine closes
		return nil
	}
	if e.bg.asleep {
		return e.bg
	}
	return nil // it is about to look for itself
}

// arm prepares everything for a parked driver; false means: poll first.
func (e *Engine) arm() bool {
	if !e.armTransports() {
		return false
	}
	e.cfg.Parker.Arm()
	return true
}

func (e *Engine) armTransports() bool {
	for _, t := range e.transports {
		if !t.Arm() {
			return false
		}
	}
	if e.look() > 0 {
		e.poll(-1) // tells the transports that nobody sleeps
		return false
	}
	return true
}

// sooner reports whether a transport wants to be polled before the sleeper w
// would wake for it.
func (e *Engine) sooner(w *Waiter) bool {
	d := e.deadline()
	return d > 0 && (w.due.IsZero() || time.Now().Add(d).Before(w.due))
}

// exit lets go of the lock at the end of a call that may have sent something:
// whatever could not leave at once, somebody has to poll for.
func (e *Engine) exit() {
	e.handOn()
	e.unlock()
}

// exitPolling is exit for calls that have waited, or could have: they may as well
// poll themselves, which costs less than waking another goroutine.
func (e *Engine) exitPolling() {
	if e.driver == nil && e.unsent() {
		e.poll(-1)
	}
	e.exit()
}

func (e *Engine) background(w *Waiter) {
	defer close(e.bgEnded)
	e.lock()
	defer e.unlock()
	e.await(context.Background(), w) // never fails: this context never ends
}

// hurry polls the peer that r waits for and nobody else, as often as a driver
// spins, and reports whether r is complete: that spares a Waiter. It keeps the
// lock, and gives up when another goroutine wants it, or another drives, or ctx has ended.
func (e *Engine) hurry(ctx context.Context, r *Request) bool {
	if r.stage == complete {
		return true
	}
	if e.spin == 0 || r.peer < 0 || e.driver != nil && !e.driver.parked {
		return false
	}
	t := e.peer(r.peer).tr
	if t == nil {
		return false
	}
	for polls := range e.spin {
		if t.Poll(r.peer); r.stage == complete {
			return true
		}
		if e.want.Load() > 0 || e.roused || polls%pollsPerCheck == pollsPerCheck-1 && ctx.Err() != nil {
			return false
		}
	}
	return false
}

// pollsPerCheck is on every how manieth poll it is looked whether the context of who polls
// has ended, whether or not there were messages: those of others may come without end.
const pollsPerCheck = 64

// drive polls until w is ready, ctx ends, or w is no longer the driver.
func (e *Engine) drive(ctx context.Context, w *Waiter, stall *alarm) {
	for polls, idle := 1, 0; !w.ready.Load() && e.driver == w && !e.rests(w); polls++ {
		if e.poll(e.hint(w)) > 0 {
			idle = 0
		} else {
			idle++
		}
		if polls%pollsPerCheck == 0 && ctx.Err() != nil {
			break
		}
		if polls%looksPerCheck == 0 && stall.rings() {
			e.notice(w, stall)
		}
		spin := e.spin
		if w.quiet && e.loud == 0 {
			spin = 0
		}
		switch {
		case e.roused:
			// Whoever was woken most often runs on this processor, if we let it.
			e.roused = false
			e.breathe(runtime.Gosched)
		case idle <= spin:
			if e.want.Load() > 0 || idle%64 == 63 {
				e.breathe(runtime.Gosched)
			}
		case idle <= spin+e.yields:
			if idle == spin+1 {
				e.tire()
			}
			e.breathe(e.cfg.Yield)
		case ctx.Err() != nil:
			e.release(w)
		case e.arm():
			w.parked = true
			e.block(ctx, w, stall)
			idle = 0
		}
	}
	e.release(w)
}

// hint returns the peer to poll first: the one w waits for, or a sleeper's.
func (e *Engine) hint(w *Waiter) int {
	if w.hint < 0 {
		for _, s := range e.sleepers {
			if s.hint >= 0 {
				return s.hint
			}
		}
	}
	return w.hint
}

// breathe lets go of the lock while calling rest.
func (e *Engine) breathe(rest func()) {
	e.unlock()
	rest()
	e.lock()
}

// block sleeps: as the parked driver if w.parked, else until another driver
// makes w ready or the drive is handed to it. The background waiter listens to
// the Parker in both cases, so that it can be made the parked driver asleep.
func (e *Engine) block(ctx context.Context, w *Waiter, stall *alarm) {
	w.asleep, w.parkable = true, w.parked || w == e.bg
	e.sleepers = append(e.sleepers, w)
	if !w.quiet {
		e.loud++
	}
	var ring <-chan struct{}
	if w.parkable {
		ring = e.cfg.Parker.C()
	}
	due := e.alarmClock(w)
	e.unlock()
	rang := false
	select {
	case <-ring:
		rang = true
	case <-due:
	case <-w.wake:
	case <-ctx.Done():
	case <-stall.after(e, w):
		stall.fired = true
	}
	e.lock()
	w.asleep, w.parkable = false, false
	i := slices.Index(e.sleepers, w)
	e.sleepers = slices.Delete(e.sleepers, i, i+1)
	if !w.quiet {
		e.loud--
	}
	switch {
	case w.parked:
		w.parked = false
		e.cfg.Parker.Disarm()
	case rang && e.driver != nil && e.driver.parked:
		e.prod(e.driver) // it rang for the one who parks now
	}
	e.notice(w, stall)
}

// alarmClock returns a channel that tells a parked driver to poll because a
// transport's time has come; nil if no transport has one.
func (e *Engine) alarmClock(w *Waiter) <-chan time.Time {
	w.due = time.Time{}
	if !w.parkable {
		return nil
	}
	d := e.deadline()
	if d == 0 {
		return nil
	}
	w.due = time.Now().Add(d)
	if w.alarm == nil {
		w.alarm = time.NewTimer(d)
	} else {
		w.alarm.Reset(d)
	}
	return w.alarm.C
}
