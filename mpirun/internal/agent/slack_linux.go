package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// crowd is how many ranks have to share a processor for timerSlack.
const crowd = 8

// timerSlack is by how much the sleeps of a rank may last longer where many share a processor. The
// monitor thread of a rank in Go sleeps for 20 us while the rank does anything, and with hundreds
// of ranks these threads take the processors from the ranks (512 ranks on two processors, start,
// barrier, allreduce and end: 1.6 s, and 1.2 with slack). Package monitor has more of this thread.
const timerSlack = 5 * time.Millisecond

// oversubscribed reports whether the ranks of this host are very many for its processors.
func (a *agent) oversubscribed() bool {
	cpus := a.affinity.Count()
	if q := a.hello.Quota; q > 0 {
		cpus = min(cpus, q)
	}
	return len(a.launch.Ranks) > crowd*cpus
}

// slacken gives this thread the timer slack of ranks, which the next process inherits. The function
// that it returns takes that back.
func (a *agent) slacken() (undo func()) {
	if !a.oversubscribed() {
		return func() {}
	}
	set := func(ns uintptr) { unix.Prctl(unix.PR_SET_TIMERSLACK, ns, 0, 0, 0) }
	set(uintptr(timerSlack))
	return func() { set(0) } // 0: as this thread had it at first
}
