// Package payload moves the bytes of messages once two ranks have agreed to exchange them, without
// knowledge of matching and credit. A Move is the payload of a message at either of its ends, from
// its announcement or arrival until it has left or is stored. An eager payload is sent with its
// envelope, and stored in the matching receive. An announced payload waits at the sender until the
// receiver asks for it with a CTS frame, and then goes in Data frames. Where one side can reach the
// memory of the other, it copies the payload itself (direct.go), if that is faster (ways.go). A
// Copy takes payload between a device and the transport (copy.go). A receive can combine the
// payload with other operands (combine.go).
package payload

import "gompi/internal/mem"

// A Lender lends host memory that the copies of a Space reach directly.
type Lender interface {
	// Lend returns a buffer of the given size for s, and may wait for a device.
	Lend(s mem.Space, bytes int) (mem.Buffer, error)
	// Return takes them back, at once.
	Return(s mem.Space, b mem.Buffer)
}

// A Locker is the lock that guards Moves.
type Locker interface {
	Lock()
	Unlock()
	Exit() // unlocks after something may have been sent
}

// A Mover has the common state of a rank's Moves.
type Mover struct {
	Direct
	Scratch mem.Scratch // for payload that arrives before its receive
	Lender  Lender      // for Buffers of devices; nil if there are none
	lock    Locker
	lent    int // chunks
}

// Init makes v ready for use.
func (v *Mover) Init(lock Locker, l Lender) { v.lock, v.mu, v.Lender = lock, lock, l }
