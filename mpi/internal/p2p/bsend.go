package p2p

import (
	"gompi/internal/core"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
)

// buffered copies m, and starts to send the copy. The result is for a persistent request, already
// over.
func (m *message) buffered() (core.Request, error) {
	return core.Request{}, m.c.BufferForSends().Send(m.n*m.t.Size(), func() core.Request {
		return m.c.P2P.Isend(m.c.RankOf(m.peer), m.tag, mem.Of(m.t.Packed(m.buf, m.n)))
	})
}

func BufferAttach(at abi.Addr, size int) error { return comms.ProcessBuffer.Attach(at, size) }
func BufferDetach() (abi.Addr, int, error)     { return comms.ProcessBuffer.Detach() }
func BufferFlush() error                       { return flush(&comms.ProcessBuffer) }
func BufferIflush() (*Request, error)          { return iflush(&comms.ProcessBuffer) }

func CommAttachBuffer(c *comms.Comm, at abi.Addr, size int) error { return c.Buffer.Attach(at, size) }
func CommDetachBuffer(c *comms.Comm) (abi.Addr, int, error)       { return c.Buffer.Detach() }
func CommFlushBuffer(c *comms.Comm) error                         { return flush(&c.Buffer) }
func CommIflushBuffer(c *comms.Comm) (*Request, error)            { return iflush(&c.Buffer) }

func SessionAttachBuffer(s *comms.Session, at abi.Addr, size int) error {
	return s.Buffer.Attach(at, size)
}
func SessionDetachBuffer(s *comms.Session) (abi.Addr, int, error) { return s.Buffer.Detach() }
func SessionFlushBuffer(s *comms.Session) error                   { return flush(&s.Buffer) }
func SessionIflushBuffer(s *comms.Session) (*Request, error)      { return iflush(&s.Buffer) }

// flush waits until all messages in the buffer are sent.
func flush(b *comms.Buffer) (err error) {
	for _, op := range b.UnderWay() {
		if _, e := op.Wait(comms.Forever); err == nil {
			err = e
		}
	}
	return err
}

func iflush(b *comms.Buffer) (*Request, error) {
	ops := b.UnderWay()
	if len(ops) == 0 {
		return RequestDone, nil
	}
	r := NewRequest(comms.World).Of(comms.Unattached)
	r.Op, r.Others = ops[0], ops[1:]
	return r, nil
}
