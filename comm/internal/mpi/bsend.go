package mpi

import (
	"sync"

	"gompi/comm"
)

// attached is the buffer that the program has given for buffered sends. Messages are copied to
// memory of gompi's: of the buffer only the size counts, as the standard has it (MPI 4.0, section
// 3.6.1), so that a program that gives too little is noticed.
var attached attachedBuffer

type attachedBuffer struct {
	mu    sync.Mutex
	at    Addr
	size  int
	used  int
	sends []bufferedSend
}

// A bufferedSend is one that may still be under way.
type bufferedSend struct {
	op   comm.Request
	room int
}

func BufferAttach(buf Addr, size int) error {
	attached.mu.Lock()
	defer attached.mu.Unlock()
	switch {
	case size < 0:
		return wrong(errArg, "the size is %d: want 0 or more", size)
	case attached.at != 0 || attached.size > 0:
		return wrong(errBuffer, "a buffer is attached")
	}
	attached.at, attached.size = buf, size
	return nil
}

// BufferDetach waits until all messages in the buffer are sent.
func BufferDetach() (Addr, int, error) {
	attached.mu.Lock()
	defer attached.mu.Unlock()
	if attached.at == 0 && attached.size == 0 {
		return 0, 0, wrong(errBuffer, "no buffer is attached")
	}
	var first error
	for _, s := range attached.sends {
		if _, err := s.op.Wait(forever); first == nil {
			first = err
		}
	}
	at, size := attached.at, attached.size
	attached.at, attached.size, attached.used, attached.sends = 0, 0, 0, nil
	return at, size, first
}

// send copies m, and starts to send it. What it returns is for a persistent request: it is over.
func (b *attachedBuffer) send(m *message) (comm.Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := m.n*m.t.Size() + face.BsendOverhead
	if b.used+room > b.size {
		b.reclaim()
	}
	if b.used+room > b.size {
		return comm.Request{}, wrong(errBuffer, "the message needs %d bytes of the attached buffer, which has %d free of %d", room, b.size-b.used, b.size)
	}
	op := m.c.p2p.Isend(m.c.rankOf(m.peer), m.tag, comm.Of(m.t.packed(m.buf, m.n)))
	b.used += room
	b.sends = append(b.sends, bufferedSend{op, room})
	return comm.Request{}, nil
}

// reclaim forgets the sends that are over.
func (b *attachedBuffer) reclaim() {
	left := b.sends[:0]
	for _, s := range b.sends {
		if _, done, _ := s.op.Test(); done {
			b.used -= s.room
		} else {
			left = append(left, s)
		}
	}
	clear(b.sends[len(left):])
	b.sends = left
}
