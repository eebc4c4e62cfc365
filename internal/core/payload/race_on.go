//go:build race

package payload

import (
	"runtime"
	"unsafe"

	"gompi/internal/mem"
)

// Raced: the race detector watches.
const Raced = true

// Pend makes the race detector report a program that touches b, the buffer of a nonblocking
// operation, too early: that writes to it, or reads it while a receive is under way. A goroutine of
// its own accesses b, and nothing but Settle orders the access before the program's next steps.
func (m *Move) Pend(b mem.Buffer, receive bool) {
	if !b.IsHost() || b.Size() == 0 {
		return
	}
	s := b.HostSlice()
	over := make(chan struct{})
	go func() {
		if receive {
			runtime.RaceWriteRange(unsafe.Pointer(&s[0]), len(s))
		} else {
			runtime.RaceReadRange(unsafe.Pointer(&s[0]), len(s))
		}
		runtime.RaceReleaseMerge(unsafe.Pointer(m))
		runtime.RaceDisable()
		close(over)
		runtime.RaceEnable()
	}()
	runtime.RaceDisable() // waiting for the goroutine is no order of the program's
	<-over
	runtime.RaceEnable()
}

// Settle orders the access of Pend before the next steps of the caller: the program, which has
// learned that the operation is complete, or the engine, which stores a message.
func (m *Move) Settle() { runtime.RaceAcquire(unsafe.Pointer(m)) }
