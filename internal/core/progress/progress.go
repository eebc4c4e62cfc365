// Package progress is the progress engine of a rank: it decides which goroutine polls, sleeps or is
// woken. There is no progress thread. A goroutine that waits for a message polls for it itself: a
// message crosses between two processors in about 0.1 us, and waking a thread takes 20 to 30 us.
//
// The caller supplies a Source, which is polled (the transports of the rank), and a Parker, on
// which the polling goroutine sleeps when polling finds nothing. Each waiting goroutine has a
// Waiter. The Source makes a Waiter ready when the awaited event has happened.
//
// # Who polls
//
// At most one Waiter has the drive. Its goroutine, the driver, polls the Source on behalf of all.
// The driver first polls without a pause (spins), then gives the processor away before each poll
// (yields). If neither finds anything, the driver parks: it sleeps until the Parker signals that
// there is something to poll, or until the Source's deadline. A driver first blocks its thread
// for a while, if the Parker can do that, since the kernel wakes a thread in a fraction of the
// time until Go runs a goroutine; then the driver sleeps as goroutines do.
//
// A driver yields only for some ten microseconds, since a yield gives the processor only to threads
// of the same scheduling group: where each session is a group of its own (autogroups, the default
// of most distributions) a thread that yields forever keeps threads of another session from running
// for seconds, ranks of the same job among them. For the same reason a goroutine that tests in a
// loop, instead of waiting, sleeps now and then where processors are shared: see Tested.
//
// A goroutine that begins to wait takes the drive from a parked driver, which sleeps on, since
// polling costs a fraction of a wake-up. On return the new driver can hand the drive back.
//
// While operations are pending and no goroutine waits, a goroutine in the background drives. Its
// Waiter never spins, and becomes ready only when the Engine closes. The background leaves the
// drive to any other waiting goroutine, unless that has waited for long: such a goroutine mostly
// serves requests that come some time, and waking it for each message of others costs more than the
// background does.
//
// # Who sleeps, and who is woken
//
// All other waiting goroutines sleep, until their Waiter is ready, their context ends, or they
// are woken to drive, or to call a function of the program (callbacks.go). A driver passes the
// drive on before it returns. So does a call that has posted something for Poll to move, when it
// unlocks with Exit. A driver checks its context every PollsPerCheck polls, even if each poll
// finds something: messages for other goroutines may never stop.
//
// # Why no wake-up is lost
//
// One lock guards everything. The lock is held while polling and never while sleeping, and a
// driver unlocks for a moment when another goroutine wants the lock.
//
// Between the goroutines of a rank: a goroutine that goes to sleep is among the sleepers before
// it unlocks. A waking goroutine locks, finds the sleeper there, and sends to the sleeper's
// channel of capacity 1: a wake-up that comes before the sleeper receives waits in the channel. A
// wake-up that comes after something else has woken the sleeper wakes it once more in vain.
//
// Between the rank and its peers: the driver parks only after Arm. Arm stores that the rank
// sleeps, and then looks once more for something to poll. A peer stores its message, and then
// looks whether the rank sleeps. All four operations are sequentially consistent, so at least one
// of the two sees the other's store: Arm reports false, or the peer wakes the Parker. The Parker
// keeps a wake-up that comes before the driver receives. A poll disarms the Source, so PassDrive
// arms the Source again for a parked driver, and wakes that driver if there is something to poll.
//
// A wake-up of the Parker goes to a single goroutine. The background goroutine receives from the
// Parker whenever it sleeps, so that it can be made the parked driver while asleep. A wake-up for
// another driver is passed on. So does each goroutine whose thread was blocked: several may be, as
// a driver that loses the drive stays blocked, and the kernel wakes any of them. To wake a certain
// goroutine, another goroutine marks it with the lock held, and interrupts the Sleeper. A poll does
// not forget the interrupt. A goroutine that wakes interrupts again as long as another is marked. A
// goroutine that tests ends with Exit, which arms the Source again for a parked driver.
package progress

import (
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/world"
)

// A Source is polled: the transports of a rank, and the channel to its launcher. Its methods are
// called with the lock held, and keep it.
type Source interface {
	// Poll moves all that can be moved now, and returns the number of events. hint is the Hint of
	// the driver's Waiter or, if that has none, of a sleeper's.
	Poll(hint world.Rank) int
	// Arm prepares for the driver to park. The result is false when there is something to Poll
	// after all. After Arm returned true, whatever gives Poll something to do also wakes the
	// Parker, until the next Poll.
	Arm() bool
	// Pending reports whether there is something to Poll for even if no goroutine waits.
	Pending() bool
	// Deadline returns how soon Poll has to be called at the latest, 0 if time makes no difference.
	Deadline() time.Duration
	// Stalled is called by a goroutine that has waited for StallAfter, and with Config.Watch again
	// after each further StallAfter.
	Stalled()
}

// A Parker lets the driver sleep until there is something to poll. C may also deliver for nothing.
type Parker interface {
	// Arm makes C deliver, once, when there is something to poll, already or before Disarm.
	Arm()
	Disarm()
	C() <-chan struct{}
}

// A Sleeper is a Parker that can block the thread of the driver, found by type assertion.
type Sleeper interface {
	// Sleep returns when there is something to poll, when Interrupt is called, or after d. rang
	// reports whether Sleep returned before d was over. Sleep needs no Arm of the Parker.
	Sleep(d time.Duration) (rang bool)
	// Interrupt ends the Sleep of a goroutine, or the next Sleep, perhaps of a different goroutine.
	Interrupt()
	// EndInterrupt is called when no goroutine that was interrupted sleeps any more.
	EndInterrupt()
}

// Config has the Source to poll, and how to sleep.
type Config struct {
	Source Source
	Parker Parker
	Yield  func() // gives the processor to any other thread that can run
	// Watch makes every wait, the background's included, call the Source's Stalled each
	// StallAfter. Without Watch a wait calls Stalled once, and the background never does.
	Watch bool
	// Sleeps is notified of each foreground wait that sleeps; nil if there is no listener.
	Sleeps Sleeps
}

// Sleeps is notified of the waits of a rank that sleep. Its methods are called with the lock held.
type Sleeps interface {
	Begin() (number uint64)               // a wait begins to sleep
	End(number uint64, nanoseconds int64) // the wait has ended, so long after its first sleep
}

// An Engine is the progress engine of a rank. Its methods and its Waiters' methods are called
// with the lock held, except Init, Lock, TryLock and Spins. Init comes first.
type Engine struct {
	cfg     Config
	sleeper Sleeper      // the Parker, if it implements Sleeper
	lease   Lease        // lent to C while the Engine is unlocked, nil without C
	want    atomic.Int32 // goroutines that wait for mu: a driver unlocks for them

	mu              sync.Mutex
	driver          *Waiter   // polling or parked
	sleepers        []*Waiter // in the order in which they went to sleep
	foreground      int       // sleepers that are not in the background
	began           time.Time // when a foreground goroutine last went to sleep for the first time in its wait
	background      *Waiter   // polls when no other goroutine waits; nil until needed
	backgroundEnded chan struct{}
	woken           bool // a goroutine has become runnable since the last yield of a driver
	closes          bool // Close was called: nobody drives any more
	spinPolicy
	operations
	tests
	flags     []flag     // that goroutines wait for
	callbacks []callback // that no goroutine has begun to call
}

// Init makes p ready for use.
func (p *Engine) Init(cfg Config) {
	p.cfg = cfg
	p.sleeper, _ = cfg.Parker.(Sleeper)
}

// A Lease is the part of the guarded state that C uses while nobody has the lock.
type Lease interface {
	Recall() // takes the lent state back
}

// SetLease sets the Lease that every Lock recalls. The lock is held.
func (p *Engine) SetLease(l Lease) { p.lease = l }

// Lock locks the Engine. A spinning driver unlocks for the caller.
func (p *Engine) Lock() {
	if !p.mu.TryLock() {
		p.want.Add(1)
		p.mu.Lock()
		p.want.Add(-1)
	}
	if p.lease != nil {
		p.lease.Recall()
	}
}

// TryLock locks the Engine if it is unlocked, and reports whether it did.
func (p *Engine) TryLock() bool {
	if !p.mu.TryLock() {
		return false
	}
	if p.lease != nil {
		p.lease.Recall()
	}
	return true
}

// Rest reports whether no goroutine waits or drives and nothing is under way. A background
// without work loses the drive.
func (p *Engine) Rest() bool {
	if p.pending > 0 || p.deferred > 0 || p.foreground > 0 || len(p.callbacks) > 0 || p.Wanted() {
		return false
	}
	if d := p.driver; d != nil && d == p.background && d.parked && !p.busy() {
		p.disarm(d)
		d.parked, p.driver = false, nil
	}
	return p.driver == nil
}

// OnlyDeferred reports whether just n deferred operations are under way, and no goroutine waits.
func (p *Engine) OnlyDeferred(n int) bool {
	return p.deferred == n && p.pending == 0 && p.foreground == 0 && len(p.callbacks) == 0 && !p.Wanted()
}

// Unlock unlocks the Engine, and looks for no driver.
func (p *Engine) Unlock() { p.mu.Unlock() }

// Exit unlocks the Engine at the end of a call that may have polled, or may have posted something
// that could not leave at once. Exit first finds a driver if necessary.
func (p *Engine) Exit() {
	p.PassDrive()
	p.Unlock()
}

// unlockWhile calls f without the lock.
func (p *Engine) unlockWhile(f func()) {
	p.Unlock()
	f()
	p.Lock()
}

// Wanted reports whether another goroutine wants the lock.
func (p *Engine) Wanted() bool { return p.want.Load() > 0 }

// Interrupted reports whether a goroutine that polls without having the drive has to stop:
// another wants the lock, or was woken and may want this processor.
func (p *Engine) Interrupted() bool { return p.want.Load() > 0 || p.woken }

// Driven reports whether a goroutine has the drive, polling or parked.
func (p *Engine) Driven() bool { return p.driver != nil }

// Polled reports whether a driver polls, so that no other goroutine needs to.
func (p *Engine) Polled() bool { return p.driver != nil && !p.driver.parked }

// Shorten wakes a parked driver because the Source's deadline may be sooner than the driver's.
func (p *Engine) Shorten() {
	if d := p.driver; d != nil && d.parked {
		p.wake(d)
	}
}
