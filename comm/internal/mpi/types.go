package mpi

import (
	"sync"

	"gompi/comm"
	"gompi/comm/internal/mpi/datatype"
)

// A Datatype is a datatype with a handle.
type Datatype struct {
	*datatype.Type
	handle    Handle
	name      string
	committed bool
	mu        sync.Mutex // guards name and attributes
	attributes
}

// A landing is where a message goes: its buffer, or memory from which it is unpacked.
type landing struct {
	comm.Buffer
	t    *Datatype // nil if nothing is to be unpacked
	buf  Addr
	n    int
	room []byte

	spread bool // as that of a departure
}

// outgoing returns n elements as bytes: where they lie if they are one run, else a packed copy.
func (t *Datatype) outgoing(buf Addr, n int) comm.Buffer {
	if at, ok := t.Contiguous(n); ok {
		return buf.plus(at).buffer(n * t.Size())
	}
	return comm.Of(t.packed(buf, n))
}

// packed returns a copy of n elements.
func (t *Datatype) packed(buf Addr, n int) []byte {
	b := make([]byte, n*t.Size())
	t.Pack(b, uintptr(buf), n)
	return b
}

// incoming returns where n elements go. The caller calls arrived when they have come.
func (t *Datatype) incoming(buf Addr, n int) landing {
	if at, ok := t.Contiguous(n); ok {
		return landing{Buffer: buf.plus(at).buffer(n * t.Size())}
	}
	room := make([]byte, n*t.Size())
	return landing{Buffer: comm.Of(room), t: t, buf: buf, n: n, room: room}
}

// arrived unpacks as many bytes as have come.
func (l *landing) arrived(bytes int) {
	switch {
	case l.t == nil:
	case l.spread:
		packed := make([]byte, l.n*l.t.Size())
		l.t.Pack(packed, l.t.base(l.room), l.n)
		l.t.Unpack(uintptr(l.buf), l.n, packed)
	default:
		l.t.Unpack(uintptr(l.buf), l.n, l.room[:min(bytes, len(l.room))])
	}
}
