package proc

import (
	"os"
	"strconv"
	"time"
)

// mostThreads is the most threads that Ready looks at.
const mostThreads = 32

// Ready reports whether a thread of these processes or their descendants is running or ready to
// run, and returns the processor time of the processes, in steps of ClockTick. Only the first
// mostThreads threads, and the children of first threads, count.
func Ready(pids ...int) (ready bool, used time.Duration) {
	threads := 0
	for i := 0; i < len(pids) && threads < mostThreads; i++ {
		dir := dirOf(pids[i])
		f := statOf(dir)
		if len(f) < statFields {
			continue // it has ended
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

// A Turn distinguishes processes that have had time for an action, and have not acted, from
// processes without a processor.
type Turn struct {
	Begun time.Time
	Used  time.Duration // processor time of the processes at Begun
}

const (
	// TurnLook is the period of looks at processes that have not had their turn.
	TurnLook = 20 * time.Millisecond
	// TurnTime is the longest wait for a process's turn of ClockTick.
	TurnTime = time.Second
)

// Missed reports whether processes have not had their turn: one is ready to run, they have used
// less than least processor time since Begun, and that was less than most ago.
func (t *Turn) Missed(now time.Time, ready bool, used, least, most time.Duration) bool {
	return ready && used-t.Used < least && now.Sub(t.Begun) < most
}
