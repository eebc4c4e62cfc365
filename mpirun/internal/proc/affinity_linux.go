package proc

import (
	"fmt"

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
