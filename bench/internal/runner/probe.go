package runner

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"gompi/bench/internal/result"
)

// A Probe is the present distance between two processors of this machine. Virtual processors move,
// which changes the cost of small messages through shared memory by a factor of 3 to 4: only times
// in the same state are comparable.
type Probe struct {
	Nanoseconds float64 // for a flag to cross between the two
	Err         error   // why there is no time
}

// Bounds between the states: crossings took 31-63 ns within a group of cores and 245 ns between
// two. A busy machine, or one processor for both threads, takes far longer.
const (
	farNanoseconds  = 120
	busyNanoseconds = 1000
)

// The states of a machine.
const (
	Near    = "near"
	Far     = "far"
	Busy    = "busy"
	Moved   = result.Moved
	Unknown = "unknown" // there are no two processors
)

// State returns Near, Far, Busy or Unknown.
func (p Probe) State() string {
	switch {
	case p.Err != nil:
		return Unknown
	case p.Nanoseconds < farNanoseconds:
		return Near
	case p.Nanoseconds < busyNanoseconds:
		return Far
	}
	return Busy
}

// String is the time.
func (p Probe) String() string {
	if p.Err != nil {
		return p.Err.Error()
	}
	return fmt.Sprintf("%.0f ns (%s)", p.Nanoseconds, p.State())
}

// Between returns the state of a machine from one Probe to the next.
func Between(before, after Probe) string {
	if before.State() != after.State() {
		return Moved
	}
	return before.State()
}

// Crossings of one measurement, about 2 to 10 ms. The best of probes counts, as a disturbance makes
// a measurement longer.
const (
	warmUp    = 2_000
	crossings = 40_000
	probes    = 5
	hopeless  = 10 * time.Second
)

// ProbeFlag bounces a flag in shared memory between two threads, each bound to a processor of its
// own where possible.
func ProbeFlag() Probe {
	if runtime.NumCPU() < 2 {
		return Probe{Err: errors.New("only one processor")}
	}
	best := Probe{Err: errors.New("the machine is too busy")}
	deadline := time.Now().Add(hopeless)
	for range probes {
		took, ok := bounce(deadline)
		ns := float64(took) / (crossings - warmUp)
		if ok && (best.Err != nil || ns < best.Nanoseconds) {
			best = Probe{Nanoseconds: ns}
		}
	}
	return best
}

// A line is a counter alone in its cache line.
type line struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

// bounce increments a shared number by two threads in turn: one thread makes it odd, the other
// even.
func bounce(deadline time.Time) (took time.Duration, ok bool) {
	var flag line
	var late atomic.Bool
	watch := time.AfterFunc(time.Until(deadline), func() { late.Store(true) })
	defer watch.Stop()
	var start time.Time // when both threads are warm
	turns := func(which int) {
		// The thread ends with the goroutine, and its binding with it.
		runtime.LockOSThread()
		bindThread(which)
		for mine := int64(which); mine < crossings; mine += 2 {
			for flag.n.Load() != mine {
				if late.Load() {
					return
				}
			}
			if mine == warmUp {
				start = time.Now()
			}
			flag.n.Store(mine + 1)
		}
	}
	done := make(chan struct{}, 2)
	for which := range 2 {
		go func() { // ends after its turns, or at the deadline
			defer func() { done <- struct{}{} }()
			turns(which)
		}()
	}
	<-done
	<-done
	return time.Since(start), !late.Load() && time.Now().Before(deadline)
}
