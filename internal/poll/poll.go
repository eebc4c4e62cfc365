// Package poll watches descriptors for the one driver of a rank: it says what
// is ready without blocking while the driver spins, and tells a channel when the
// driver has given up spinning, so that sleeping takes neither a thread nor a
// slot of the scheduler.
//
// A Set has one driver at a time, which alone calls Ready, Arm and Disarm. Wake
// may be called from any goroutine, Add, Mod and Del too.
package poll

import "golang.org/x/sys/unix"

// Interest is what a descriptor is watched for, or has become ready for.
type Interest uint8

// The two interests. A descriptor in error is ready for both.
const (
	Read Interest = 1 << iota
	Write
)

// An Event says that a descriptor is ready. Readiness is a level: it is
// reported again until it has been dealt with.
type Event struct {
	Key   uint64
	Ready Interest
}

// bellKey is the key of the doorbell, which no caller may use.
const bellKey = ^uint64(0)

// A bell is the channel that a sleeping driver listens to. What rings it stays
// until it has been heard.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

var one = [8]byte{1} // whatever the byte order: it counts for more than nothing

// Ring rings a doorbell of New's: from any goroutine or process, without blocking
// for long. A doorbell that rings already stays as it is.
func Ring(doorbell int) {
	_, _ = unix.Write(doorbell, one[:])
}
