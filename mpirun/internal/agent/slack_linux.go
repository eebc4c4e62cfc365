package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// crowd is how many ranks have to share a processor for timerSlack.
const crowd = 8

// timerSlack is by how much the sleeps of a rank may last longer where many share a processor, and
// slackOfRank what it is at least for each of these. The monitor thread of a rank in Go sleeps for
// 20 us while the rank does anything, and while it waits for a processor: each sleep costs about 5
// us of one. So with a slack of 5 ms 1,000 ranks take all of two processors for that, and none of
// them gets on (1,024 ranks on two processors, start, barrier, allreduce and end: 10 to 58 s of a
// processor, and 6 to 9 with slackOfRank). Package guest has more of this thread.
const (
	timerSlack  = 5 * time.Millisecond
	slackOfRank = 100 * time.Microsecond
)

// slack returns the timer slack of this host's ranks, 0 for the usual one.
func (a *agent) slack() time.Duration {
	cpus := a.affinity.Count()
	if q := a.hello.Quota; q > 0 {
		cpus = min(cpus, q)
	}
	ranks := len(a.launch.Ranks)
	if ranks <= crowd*cpus {
		return 0
	}
	return max(timerSlack, time.Duration(ranks/cpus)*slackOfRank)
}

// slacken gives this thread the timer slack of ranks, which the next process inherits. The function
// that it returns takes that back.
func (a *agent) slacken() (undo func()) {
	slack := a.slack()
	if slack == 0 {
		return func() {}
	}
	set := func(d time.Duration) { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }
	set(slack)
	return func() { set(0) } // 0: as this thread had it at first
}
