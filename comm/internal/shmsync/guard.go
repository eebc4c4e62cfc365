package shmsync

import (
	"runtime"
	"time"
)

// A member may let others write to memory that only it maps: the kernel does so for them. In a
// collective that ends well, a barrier comes behind the last write. But a member whose collective
// fails returns at once, and then its memory is its caller's again. So who writes says so, to one
// member at a time, and does not if that member is shut; and a member that fails shuts, and then
// waits for those that write to it.
//
// The two flags are stored and loaded by sequentially consistent operations, each by its owner
// before it looks at the other's. So if the writer did not see that the member is shut, the
// member's look comes behind the writer's flag, and sees that until the write is over.

// A writing is so short that it is over after so long, also if its process has been stopped, which
// happens outside of calls of the kernel, or has died.
const longestWrite = time.Second

// MayWrite reports whether this member may write to memory of another, some hundred KiB at most.
// If so, Written must follow.
func (t *Team) MayWrite(member int) bool {
	own := t.parts[t.me].flags
	own.writesTo.Store(uint64(member) + 1)
	if t.parts[member].flags.shut.Load() == 0 {
		return true
	}
	own.writesTo.Store(0)
	return false
}

// Written says that the write is over.
func (t *Team) Written() { t.parts[t.me].flags.writesTo.Store(0) }

// Shut returns when no other member writes to this one's memory, and none will: the Team is broken.
func (t *Team) Shut() {
	t.parts[t.me].flags.shut.Store(1)
	end := time.Now().Add(longestWrite)
	for j := range t.parts {
		for j != t.me && t.parts[j].flags.writesTo.Load() == uint64(t.me)+1 && time.Now().Before(end) {
			runtime.Gosched()
		}
	}
}
