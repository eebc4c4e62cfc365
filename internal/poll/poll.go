// Package poll watches descriptors for the driver of a rank, the only goroutine that polls (package
// progress). While the driver spins, Ready returns the ready descriptors, without blocking. Before
// the driver sleeps, it calls Arm and then receives from the channel C: this sleep takes neither a
// thread nor a P of the Go scheduler. Or the driver calls Sleep, which takes a thread, and wakes
// sooner.
//
// One goroutine at a time, the driver, calls Ready, Arm, Disarm, Interrupt, EndInterrupt, AddWaker
// and DelWaker. Add, Mod, Del, Sleep and Wake may be called from any goroutine.
package poll

import "golang.org/x/sys/unix"

// Interest is reading or writing, for which a descriptor is watched or ready.
type Interest uint8

// The two interests. A descriptor in error is ready for both.
const (
	Read Interest = 1 << iota
	Write
)

// An Event means that a descriptor is ready. Events are level-triggered: Ready reports a ready
// descriptor each time.
type Event struct {
	Key   uint64
	Ready Interest
}

// bellKey is the key of the doorbell, which callers must not use.
const bellKey = ^uint64(0)

// A bell is the channel from which a sleeping driver receives. A ring stays in the bell until then.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

var one = [8]byte{1} // added to an eventfd's counter: not 0 in either byte order

// Ring rings a doorbell of a Set, from any goroutine or process, without blocking for long. A
// doorbell that rings already is unchanged.
func Ring(doorbell int) {
	_, _ = unix.Write(doorbell, one[:])
}
