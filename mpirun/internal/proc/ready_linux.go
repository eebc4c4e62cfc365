package proc

import (
	"os"
	"strconv"
	"time"
)

// mostThreads is how many threads Ready looks at.
const mostThreads = 32

// Ready reports whether a thread of these processes, or of those below them, is ready to run or
// runs, and the processor time that the processes have used, in steps of ClockTick. It looks at the
// first mostThreads threads, and at the children of first threads.
func Ready(pids ...int) (ready bool, used time.Duration) {
	threads := 0
	for i := 0; i < len(pids) && threads < mostThreads; i++ {
		dir := dirOf(pids[i])
		f := statOf(dir)
		if len(f) < statFields {
			continue // it is gone
		}
		used += ticks(f, utime) + ticks(f, stime)
		tasks, _ := os.ReadDir(dir + "task/")
		for _, t := range tasks {
			if threads++; ready || threads > mostThreads {
				break
			}
			f := statOf(dir + "task/" + t.Name() + "/")
			ready = len(f) > 0 && f[0] == "R"
		}
		pids = append(pids, Children(pids[i])...)
	}
	return ready, used
}

// ticks returns a time of /proc/PID/stat.
func ticks(f []string, field int) time.Duration {
	n, _ := strconv.ParseInt(f[field], 10, 64)
	return time.Duration(n) * ClockTick
}

// A Turn distinguishes processes that have had the time to do something, and have not, from those
// that got no processor for it.
type Turn struct {
	Begun time.Time
	Used  time.Duration // what the processes had used of a processor then
}

const (
	// TurnLook is how often one looks at processes that have not had their turn.
	TurnLook = 20 * time.Millisecond
	// TurnTime is how long one waits until a process has had a turn of ClockTick.
	TurnTime = time.Second
)

// Missed reports whether processes have not had their turn: one is ready to run, and they have not
// used least of a processor since it began, most ago at most.
func (t *Turn) Missed(now time.Time, ready bool, used, least, most time.Duration) bool {
	return ready && used-t.Used < least && now.Sub(t.Begun) < most
}
