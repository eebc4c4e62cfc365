package progress

import (
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// slice is the time slice of ranks' threads: the shortest that Linux grants.
const slice = 100 * time.Microsecond

// ShortenSlices makes the scheduler give the processor to the threads of this process more often
// and for less time at once, and no more of it in all. Linux can since 6.12; before, ShortenSlices
// does nothing. Children of these threads have the usual slices: other processes should not be
// affected, and threads that wait for messages shorten their own slices (see YieldShort).
//
// A rank that yields beside a process that computes gives it the processor until its slice (1.4 to
// 3 ms) or the scheduler's tick (1 to 10 ms) is over, each time; with the shortest slice the rank
// gets the processor back at once, as long as it has used less than its share. With four ranks on
// two processors beside two processes that compute, slices of 100 us make a latency of 8 B 5.0 us
// instead of 1938 (gompi-bench compare -np 4 -busy 2, autogroups off).
func ShortenSlices() {
	seen := make(map[string]bool)
	for range 10 { // until no thread is new: threads may start meanwhile
		known := len(seen)
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			if tid, err := strconv.Atoi(t.Name()); err == nil && !seen[t.Name()] {
				shortenSlice(tid)
				seen[t.Name()] = true
			}
		}
		if len(seen) == known {
			return
		}
	}
}

// shortenSlice shortens the slice of a thread. It skips threads that have ended, and threads that
// the user has put under the idle policy or a real-time policy, or ahead of others by a negative
// nice value: their children would lose that with the slice.
func shortenSlice(tid int) {
	a, err := unix.SchedGetAttr(tid, 0)
	fair := err == nil && (a.Policy == unix.SCHED_NORMAL || a.Policy == unix.SCHED_BATCH) && a.Nice >= 0
	if !fair || a.Runtime <= uint64(slice) { // older kernels than 6.12 report 0
		return
	}
	a.Runtime = uint64(slice)
	a.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
	unix.SchedSetAttr(tid, a, 0)
}

var (
	yielded atomic.Uint32 // how often, modulo a power of two
	// shortened are the threads that YieldShort has seen, each at its number modulo their length. A
	// new thread that reuses the number of an ended thread keeps its usual slice.
	shortened [256]atomic.Uint32
)

// lookEvery is the number of yields between two looks at the yielding thread, fewer than a rank
// makes before it sleeps. A look is a system call, like a yield.
const lookEvery = 16

// YieldShort is Yield with short slices, also for threads started since Init, if they wait.
func YieldShort() {
	if yielded.Add(1)%lookEvery == 0 {
		tid, _, _ := unix.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
		if seen := &shortened[tid%uintptr(len(shortened))]; seen.Load() != uint32(tid) {
			seen.Store(uint32(tid))
			shortenSlice(int(tid))
		}
	}
	Yield()
}

// Yield gives the processor to another process. The thread stays runnable, as when the kernel takes
// the processor away, so a raw system call holds up no goroutine longer than that does. Gosched and
// ordinary system calls make Go wake another thread of this process to look for work, which
// competes with the process that should run (np=4 on two processors, barrier: 30 us with them).
func Yield() {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
