package procinfo

import (
	"os"
	"strconv"
	"time"

	"gompi/mpirun/internal/tree"
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
		pids = append(pids, tree.Children(pids[i])...)
	}
	return ready, used
}

// ticks returns a time of /proc/PID/stat.
func ticks(f []string, field int) time.Duration {
	n, _ := strconv.ParseInt(f[field], 10, 64)
	return time.Duration(n) * ClockTick
}
