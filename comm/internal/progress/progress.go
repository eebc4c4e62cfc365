// Package progress is the progress engine of a rank: it decides which goroutine polls, which
// sleep, and which is woken. It does not know what there is to poll: it needs a Source that can
// be polled, armed, and asked whether something is pending, and a Parker to sleep on.
//
// There is no progress thread. Whoever waits, drives: a message crosses between two processors
// in a tenth of a microsecond, and to wake a goroutine that sleeps takes a hundred times that.
//
// # Who polls
//
// A goroutine that waits has a Waiter. At most one Waiter has the drive: its goroutine polls the
// Source on behalf of all. It polls at once again (spins), then after giving the processor away
// (yields), and when that brought nothing for long enough, it parks: it sleeps until the Parker
// says that there is something to poll, or until the Source's deadline.
//
// A goroutine that begins to wait takes the drive from one that is parked, since polling costs a
// fraction of a wake-up. The parked one stays asleep. When the other leaves, the sleeper can be
// made the parked driver again without having run.
//
// While operations are pending and nobody waits, one goroutine in the background drives. Its
// Waiter never spins, and becomes ready only when the Engine closes. It leaves the drive to any
// other goroutine that waits.
//
// # Who sleeps, and who is woken
//
// All others that wait sleep, until their Waiter is made ready or they are woken to drive. A
// driver passes the drive on before it returns. So does a call that has posted something for Poll
// to move, when it unlocks with Exit. The end of its context wakes a sleeper. A driver that polls
// looks at its context now and then, also while there is news: that of others may come without
// end.
//
// # Why nobody is forgotten
//
// One lock guards everything. It is held while polling and never while sleeping, and a driver
// unlocks it for a moment when another goroutine wants it.
//
// Between the goroutines of a rank: a goroutine that goes to sleep is among the sleepers before
// it unlocks. To wake it, another locks, finds it there, and sends to its channel, which has room
// for one: a wake-up that comes before the sleeper listens waits in the channel. One that comes
// when something else has woken the sleeper wakes it once more in vain.
//
// Between the rank and its peers: the driver parks only after Arm. Arm stores that the rank
// sleeps, and then looks once more for something to poll. A peer stores its news, and then looks
// whether the rank sleeps. Both are sequentially consistent, so at least one of the two sees the
// other's store: Arm reports false, or the peer wakes the Parker. The Parker keeps a wake-up
// that comes before the driver listens. A poll disarms the Source, so PassDrive arms it again for
// a driver that is parked, and wakes that driver if there is something to poll.
//
// A wake-up of the Parker goes to one goroutine. The background listens to it whenever it sleeps,
// so that it can be made the parked driver asleep; it passes a wake-up for another driver on.
package progress

import (
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/world"
)

// A Source is what is polled: the transports of a rank, and whatever else has news for it. Its
// methods are called with the lock held, and keep it.
type Source interface {
	// Poll moves what can be moved now, and returns the number of events. hint is the Hint of the
	// driver's Waiter or, if that has none, of a sleeper's.
	Poll(hint world.Rank) int
	// Arm prepares for the driver to park. It reports false when there is something to Poll
	// after all. After it returned true, whatever gives Poll something to do also wakes the
	// Parker, until the next Poll.
	Arm() bool
	// Pending reports whether there is something to Poll for even if nobody waits.
	Pending() bool
	// Deadline returns how soon Poll has to be called at the latest, 0 if time makes no
	// difference.
	Deadline() time.Duration
	// Stalled tells that a goroutine, the caller, has waited for StallAfter.
	Stalled()
}

// A Parker lets the driver sleep until there is something to poll. C may deliver in vain.
type Parker interface {
	// Arm makes what becomes ready send to C, once, until Disarm. What is ready already counts.
	Arm()
	Disarm()
	C() <-chan struct{}
}

// Config says what is polled, and how to sleep.
type Config struct {
	Source Source
	Parker Parker
	Yield  func() // gives the processor to whatever else can run
	// Watch has Stalled called every StallAfter in a wait, the background's included. Else it is
	// called once in each, and not in the background.
	Watch bool
}

// An Engine is the progress engine of one rank. Its methods and those of its Waiters are called
// with the lock held, but for Init, Lock, TryLock and Spins. Init comes first.
type Engine struct {
	cfg  Config
	want atomic.Int32 // goroutines that want mu: a driver lets them have it

	mu              sync.Mutex
	driver          *Waiter   // polling or parked
	sleepers        []*Waiter // in the order in which they went to sleep
	foreground      int       // sleepers that are not in the background
	background      *Waiter   // polls when nobody else waits; nil until it is needed
	backgroundEnded chan struct{}
	woken           bool // a goroutine has become runnable, and no driver has yielded to it
	spinPolicy
	operations
}

// Init makes p ready for use.
func (p *Engine) Init(cfg Config) { p.cfg = cfg }

// Lock locks the Engine, and has a driver that spins let go of it.
func (p *Engine) Lock() {
	if p.mu.TryLock() {
		return
	}
	p.want.Add(1)
	p.mu.Lock()
	p.want.Add(-1)
}

// TryLock locks the Engine unless it is locked, and reports whether it has.
func (p *Engine) TryLock() bool { return p.mu.TryLock() }

// Unlock unlocks the Engine, and leaves the drive as it is.
func (p *Engine) Unlock() { p.mu.Unlock() }

// Exit unlocks the Engine at the end of a call that may have polled, or posted something that
// could not leave at once: it finds a driver for that.
func (p *Engine) Exit() {
	p.PassDrive()
	p.Unlock()
}

// unlockWhile lets go of the lock while calling f.
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

// Polled reports whether a goroutine has the drive and is not parked: no other need poll.
func (p *Engine) Polled() bool { return p.driver != nil && !p.driver.parked }

// Shorten tells that the Source's deadline may be sooner than it was: it wakes a parked driver,
// which may sleep for longer.
func (p *Engine) Shorten() {
	if d := p.driver; d != nil && d.parked {
		p.wake(d)
	}
}
