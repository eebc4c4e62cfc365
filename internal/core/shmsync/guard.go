package shmsync

import (
	"runtime"
	"sync/atomic"
	"time"
)

// A member may let others read and write memory that only this member maps: the kernel accesses
// it for them. In a collective that ends well, a barrier follows the last access. But a member
// whose collective fails returns at once, and then the memory is its caller's again. So that
// member shuts.
//
// A writer announces each member to which it writes, and does not write to a member that is shut;
// and a member that shuts then waits for its writers. The two flags are stored and loaded by
// sequentially consistent operations, each by its owner before the look at the other's. So if the
// writer did not see that the member is shut, the member's look comes after the writer's flag,
// and sees the flag until the write is over.
//
// No member waits for readers. Data that they read may be wrong, so they check, after the barrier
// and so after their last read, whether a member has shut: then the collective has failed for
// them, too.

// A write is some hundred KiB, so it is over after some microseconds, unless the writer does not
// run. Shut looks this often, while it runs itself: first at once, then each time after a pause.
// Only a writer that is stopped for longer just before the kernel begins to copy could write
// later. A writer that is killed meanwhile leaves its flag as is, and writes no more when others
// learn of its death.
const (
	looks      = 1000
	pausedLook = 20_000
	pause      = 100 * time.Microsecond
)

// MayWrite reports whether this member may write to memory of another, some hundred KiB at most.
// If so, Written must follow.
func (t *Team) MayWrite(member int) bool {
	own := t.parts[t.me].flags
	own.writesTo.Store(uint64(member) + 1)
	if !t.IsShut(member) {
		return true
	}
	own.writesTo.Store(0)
	return false
}

// Written ends the write that MayWrite has allowed.
func (t *Team) Written() { t.parts[t.me].flags.writesTo.Store(0) }

// Shut returns when no other member writes to this member's memory, and none will: the Team is
// broken.
func (t *Team) Shut() {
	t.parts[t.me].flags.shut.Store(1)
	for j := range t.parts {
		for n := 0; j != t.me && t.isWrittenBy(j) && n < looks+pausedLook; n++ {
			switch {
			case n < looks:
				runtime.Gosched()
			case t.port.Gone(j):
				n = looks + pausedLook
			default:
				time.Sleep(pause)
			}
		}
	}
}

func (t *Team) isWrittenBy(member int) bool {
	return t.parts[member].flags.writesTo.Load() == uint64(t.me)+1
}

// IsShut reports whether a member has shut.
func (t *Team) IsShut(member int) bool { return t.parts[member].flags.shut.Load() != 0 }

// NoneShut returns why the Team is broken, if a member has shut.
func (t *Team) NoneShut() error {
	for j := range t.parts {
		if j != t.me && t.IsShut(j) {
			return t.AwaitError(j)
		}
	}
	return nil
}

// AwaitError returns the reason why the Team is broken, which another member knows already.
func (t *Team) AwaitError(member int) error {
	var never atomic.Uint64
	return t.port.Await(&never, 1, member)
}
