package comm

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// slice is for how long threads of ranks want the processor at once: the shortest time
// that Linux grants.
const slice = 100 * time.Microsecond

// shortenSlices has the scheduler give the processor to the threads of this process, and
// to the threads and processes that they will start, more often and for less time at once,
// and no more of it in all. Linux can since 6.12; before, this does nothing.
//
// A rank that yields beside a process that computes gives it the processor until that
// one's slice (1.4 to 3 ms) or the scheduler's tick (1 to 10 ms) is over, each time; with
// the shortest slice it gets it back at once, as long as it has used less than its share.
// gompi-compare -np 4 -busy 2 on two processors: see docs/benchmarks.md, "Beside processes
// that compute".
func shortenSlices() {
	seen := make(map[string]bool)
	for range 10 { // until none is new: one with a long slice may have started another
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

// shortenSlice shortens the slice of a thread. It leaves those alone that have ended, or
// that the user has put under the idle policy or one of real time.
func shortenSlice(tid int) {
	a, err := unix.SchedGetAttr(tid, 0)
	fair := err == nil && (a.Policy == unix.SCHED_NORMAL || a.Policy == unix.SCHED_BATCH)
	if !fair || a.Runtime <= uint64(slice) { // before 6.12 it is 0
		return
	}
	a.Runtime = uint64(slice)
	unix.SchedSetAttr(tid, a, 0)
}
