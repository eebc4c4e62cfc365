package p2p

import (
	"slices"
	"sync"

	"gompi/comm"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/errs"
)

// attached is the buffer that the program has given for buffered sends. Messages are copied to
// memory of gompi's: of the buffer only the size counts, as the standard has it (MPI 4.0, section
// 3.6.1), so that a program that gives too little is noticed.
var attached attachedBuffer

type attachedBuffer struct {
	mu    sync.Mutex
	at    abi.Addr
	size  int
	used  int
	sends []bufferedSend
}

// A bufferedSend is one that may still be under way.
type bufferedSend struct {
	op   comm.Request
	room int
}

func BufferAttach(buf abi.Addr, size int) error {
	attached.mu.Lock()
	defer attached.mu.Unlock()
	switch {
	case size < 0:
		return errs.New(errs.Arg, "the size is %d: want 0 or more", size)
	case attached.at != 0 || attached.size > 0:
		return errs.New(errs.Buffer, "a buffer is attached")
	}
	attached.at, attached.size = buf, size
	return nil
}

// BufferDetach waits until all messages in the buffer are sent.
func BufferDetach() (abi.Addr, int, error) {
	attached.mu.Lock()
	defer attached.mu.Unlock()
	if attached.at == 0 && attached.size == 0 {
		return 0, 0, errs.New(errs.Buffer, "no buffer is attached")
	}
	var first error
	for _, s := range attached.sends {
		if _, err := s.op.Wait(comms.Forever); first == nil {
			first = err
		}
	}
	at, size := attached.at, attached.size
	attached.at, attached.size, attached.used, attached.sends = 0, 0, 0, nil
	return at, size, first
}

// underWay returns the sends that may still be under way. To wait for one that is over is no error.
func (b *attachedBuffer) underWay() []bufferedSend {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reclaim()
	return slices.Clone(b.sends)
}

// BufferFlush waits until all messages in the buffer are sent.
func BufferFlush() (first error) {
	for _, s := range attached.underWay() {
		if _, err := s.op.Wait(comms.Forever); first == nil {
			first = err
		}
	}
	return first
}

func BufferIflush() (*Request, error) {
	sends := attached.underWay()
	if len(sends) == 0 {
		return RequestDone, nil
	}
	r := NewRequest(comms.World)
	r.Op = sends[0].op
	for _, s := range sends[1:] {
		r.Others = append(r.Others, s.op)
	}
	return r, nil
}

// send copies m, and starts to send it. What it returns is for a persistent request: it is over.
func (b *attachedBuffer) send(m *message) (comm.Request, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := m.n*m.t.Size() + abi.C.BsendOverhead
	if b.used+room > b.size {
		b.reclaim()
	}
	if b.used+room > b.size {
		return comm.Request{}, errs.New(errs.Buffer, "the message needs %d bytes of the attached buffer, which has %d free of %d", room, b.size-b.used, b.size)
	}
	op := m.c.P2P.Isend(m.c.RankOf(m.peer), m.tag, comm.Of(m.t.Packed(m.buf, m.n)))
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
