package comms

import (
	"slices"
	"sync"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// A Buffer is the program's buffer for buffered sends. Messages are copied to memory of gompi's:
// of the program's buffer only the size counts, as the standard has it (MPI 4.0, section 3.6.1),
// so that a program whose buffer is too small is noticed.
type Buffer struct {
	mu    sync.Mutex
	given bool
	at    abi.Addr // NULL is valid, of no bytes
	size  int
	used  int
	sends []bufferedSend
}

// A bufferedSend is a send that may still be under way.
type bufferedSend struct {
	op   core.Request
	room int
}

// ProcessBuffer is the buffer of MPI_Buffer_attach, for communicators without a buffer of their own,
// or their session's.
var ProcessBuffer Buffer

// BufferForSends returns the buffer that sends on c take.
func (c *Comm) BufferForSends() *Buffer {
	switch {
	case c.Buffer.attached():
		return &c.Buffer
	case c.session != nil && c.session.Buffer.attached():
		return &c.session.Buffer
	}
	return &ProcessBuffer
}

func (b *Buffer) attached() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.given
}

func (b *Buffer) Attach(at abi.Addr, size int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case size < 0:
		return errs.New(errs.Arg, "the size is %d: want 0 or more", size)
	case b.given:
		return errs.New(errs.Buffer, "a buffer is attached")
	}
	b.given, b.at, b.size = true, at, size
	return nil
}

// Detach waits until all messages in the buffer are sent.
func (b *Buffer) Detach() (abi.Addr, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.given {
		return 0, 0, errs.New(errs.Buffer, "no buffer is attached")
	}
	var first error
	for _, s := range b.sends {
		if _, err := s.op.Wait(Forever); first == nil {
			first = err
		}
	}
	at, size := b.at, b.size
	b.given, b.at, b.size, b.used, b.sends = false, 0, 0, 0, nil
	return at, size, first
}

// UnderWay returns the sends that may still be under way. Waiting for a send that is over is no
// error.
func (b *Buffer) UnderWay() []core.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reclaim()
	ops := make([]core.Request, len(b.sends))
	for i, s := range b.sends {
		ops[i] = s.op
	}
	return ops
}

// Send starts a send of n bytes if there is room. start copies the message.
func (b *Buffer) Send(n int, start func() core.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := n + abi.C.BsendOverhead
	automatic := b.given && b.at == abi.C.BufferAutomatic
	if b.used+room > b.size {
		b.reclaim()
	}
	if b.used+room > b.size && !automatic {
		return errs.New(errs.Buffer, "the message needs %d bytes of the attached buffer, which has %d free of %d", room,
			b.size-b.used, b.size)
	}
	b.used += room
	b.sends = append(b.sends, bufferedSend{start(), room})
	return nil
}

// reclaim forgets the sends that are over.
func (b *Buffer) reclaim() {
	b.sends = slices.DeleteFunc(b.sends, func(s bufferedSend) bool {
		_, over, _ := s.op.Test()
		if over {
			b.used -= s.room
		}
		return over
	})
}
