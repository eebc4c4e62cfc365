package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// An Affinity is the binding of this thread, which the next process inherits.
type Affinity struct {
	own   unix.CPUSet // at first
	bound []int       // now, nil for own
}

// OwnAffinity returns this thread's affinity: all CPUs in a sandbox that does not tell.
func OwnAffinity() (a Affinity) {
	if unix.SchedGetaffinity(0, &a.own) != nil {
		for i := range a.own {
			a.own[i] = ^a.own[i]
		}
	}
	return a
}

// Own returns the number of the thread's own CPUs.
func (a *Affinity) Own() int { return a.own.Count() }

// Bind binds this thread to cpus, or, for nil, to its own CPUs.
func (a *Affinity) Bind(cpus []int) error {
	if cpus == nil && a.bound == nil {
		return nil
	}
	set := a.own
	if cpus != nil {
		set = unix.CPUSet{}
		for _, c := range cpus {
			set.Set(c)
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		unix.SchedSetaffinity(0, &a.own)
		a.bound = nil
		return fmt.Errorf("bind to CPUs %v: %w", cpus, err)
	}
	a.bound = cpus
	return nil
}

// crowd is the ranks for each processor above which timerSlack applies.
const crowd = 8

// timerSlack is the extra duration of a rank's sleeps where many ranks share a processor;
// slackOfRank is its minimum for each of these ranks. The monitor thread of a rank in Go sleeps
// for 20 us while the rank is active or waits for a processor, and each sleep costs about 5 us of
// processor time. With a slack of 5 ms, 1,000 ranks need all of two processors for that, and none
// advances (1,024 ranks on two processors, start, barrier, allreduce and end: 10 to 58 s of
// processor time, and 6 to 9 with slackOfRank). Package guest has more on this thread.
const (
	timerSlack  = 5 * time.Millisecond
	slackOfRank = 100 * time.Microsecond
)

// slack returns the timer slack of ranks that share processors, 0 for the default.
func slack(ranks, cpus int) time.Duration {
	if ranks <= crowd*cpus {
		return 0
	}
	return max(timerSlack, time.Duration(ranks/cpus)*slackOfRank)
}

// Slacken gives this thread the timer slack of ranks that share processors, for the next process to
// inherit. undo restores the thread's own.
func Slacken(ranks, cpus int) (undo func()) {
	slack := slack(ranks, cpus)
	if slack == 0 {
		return func() {}
	}
	set := func(d time.Duration) { unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0) }
	set(slack)
	return func() { set(0) } // 0: the thread's initial slack
}
