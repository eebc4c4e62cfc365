// Package poll watches descriptors for the driver of a rank, the one goroutine that polls
// (package progress). While the driver spins, Ready returns which descriptors are ready,
// without blocking. Before the driver sleeps, it calls Arm and then receives from the channel C:
// so its sleep takes neither a thread nor a P of the Go scheduler. Or it calls Sleep, which takes a
// thread, and wakes sooner.
//
// One goroutine at a time, the driver, calls Ready, Arm, Disarm, Interrupt, EndInterrupt, AddWaker
// and DelWaker. Add, Mod, Del, Sleep and Wake may be called from any goroutine.
package poll

import "golang.org/x/sys/unix"

// Interest specifies whether a descriptor is watched for, or ready for, reading or writing.
type Interest uint8

// The two interests. A descriptor in error is ready for both.
const (
	Read Interest = 1 << iota
	Write
)

// An Event means that a descriptor is ready. Events are level-triggered: Ready reports a
// descriptor each time until it is ready no more.
type Event struct {
	Key   uint64
	Ready Interest
}

// bellKey is the key of the doorbell, which no caller may use.
const bellKey = ^uint64(0)

// A bell is the channel from which a sleeping driver receives. A ring stays in it until the
// driver receives it.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

var one = [8]byte{1} // an eventfd adds it to its counter: not 0 in either byte order

// Ring rings a doorbell that was given to New, from any goroutine or process, without blocking
// for long. It changes nothing if the doorbell rings already.
func Ring(doorbell int) {
	_, _ = unix.Write(doorbell, one[:])
}
