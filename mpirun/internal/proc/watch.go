package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// Obstacles to a process's running, as Look returns them.
const (
	Stopped  = "is stopped (kill -CONT lets it continue)"
	Debugged = "is stopped by a debugger"
	Starves  = "gets no processor"
)

// A Watch finds the obstacle to a process's running, from looks some time apart. The process does
// not notice.
type Watch struct {
	pid   int
	used  string            // processor time of the process at the last look
	ready map[string]string // run time at that look of each thread that was ready to run, by thread
	at    time.Time         // of that look
	kept  string
	since time.Time
}

// NewWatch returns a Watch of a process.
func NewWatch(pid int) *Watch { return &Watch{pid: pid} }

// PID returns the process.
func (w *Watch) PID() int { return w.pid }

// Since returns the duration of the latest obstacle.
func (w *Watch) Since() time.Duration {
	if w.kept == "" {
		return 0
	}
	return time.Since(w.since)
}

// leastWait is the least wait of a thread without a processor that is reported: shorter waits are
// normal on a busy machine.
const leastWait = time.Second / 2

// Look returns the obstacle to the process's running, "" if there is none. A process gets no
// processor if a thread was ready to run at an earlier look, still is, and has not run meanwhile.
func (w *Watch) Look() string {
	now := time.Now()
	kept := ""
	f := statOf(dirOf(w.pid))
	switch {
	case len(f) < statFields:
	case f[0] == "T":
		kept = Stopped
	case f[0] == "t":
		kept = Debugged
	case now.Sub(w.at) < leastWait:
		if w.kept == Starves {
			kept = Starves
		}
	default:
		if w.starves(f[utime] + " " + f[stime]) {
			kept = Starves
		}
		w.at = now
	}
	if kept != w.kept {
		w.kept, w.since = kept, now
	}
	return kept
}

// starves reports whether a thread has waited for a processor since the last look. Threads are
// looked at only if the process has used no time.
func (w *Watch) starves(used string) bool {
	if used != w.used {
		w.used, w.ready = used, nil
		return false
	}
	before := w.ready
	w.ready = map[string]string{}
	dir := dirOf(w.pid) + "task/"
	tasks, _ := os.ReadDir(dir)
	starves := false
	for _, t := range tasks {
		if f := statOf(dir + t.Name() + "/"); len(f) < statFields || f[0] != "R" {
			continue
		}
		run, err := os.ReadFile(dir + t.Name() + "/schedstat")
		if err != nil {
			continue // the kernel does not report it
		}
		ran, _, _ := bytes.Cut(run, []byte{' '})
		w.ready[t.Name()] = string(ran)
		starves = starves || before[t.Name()] == string(ran)
	}
	return starves
}

// Fields of /proc/PID/stat by proc(5), from the state on.
const (
	utime      = 14 - 3
	stime      = 15 - 3
	cutime     = 16 - 3
	cstime     = 17 - 3
	begun      = 22 - 3
	rss        = 24 - 3
	statFields = begun + 1
)

// statOf returns the fields of dir/stat from the state on, nil if the process or thread has
// ended.
func statOf(dir string) []string {
	stat, _ := os.ReadFile(dir + "stat")
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

func dirOf(pid int) string { return fmt.Sprintf("/proc/%d/", pid) }
