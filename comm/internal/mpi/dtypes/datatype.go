package dtypes

import (
	"sync"

	"gompi/comm"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/attrs"
	"gompi/comm/internal/mpi/datatype"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/table"
)

var Registry = abi.NewRegistry[Datatype](table.DatatypeNull)

func init() {
	for t := range datatype.All() {
		b := t.Basic()
		Registry.Set(abi.Handle(b.ID), &Datatype{Type: t, Handle: abi.Handle(b.ID), name: b.Name, committed: true})
	}
}

// A Datatype is a datatype with a handle.
type Datatype struct {
	*datatype.Type
	Handle    abi.Handle
	name      string
	committed bool
	mu        sync.Mutex // guards name
	attrs.Attributes
}

// A Staged is n elements that move by way of room, packed.
type Staged struct {
	t    *Datatype
	buf  abi.Addr
	n    int
	room []byte
}

// Stage returns n elements at buf that move by way of room.
func (t *Datatype) Stage(buf abi.Addr, n int, room []byte) Staged { return Staged{t, buf, n, room} }

// Leave fills room.
func (s *Staged) Leave() { s.t.Pack(s.room, uintptr(s.buf), s.n) }

// Arrive stores what is in room.
func (s *Staged) Arrive() { s.t.Unpack(uintptr(s.buf), s.n, s.room) }

// Span returns where the data of an array of n elements begins, counted from its address, and how
// many bytes it spans. n is 1 or more.
func (t *Datatype) Span(n int) (from, bytes int) {
	lb, extent := t.TrueExtent()
	last := (n - 1) * t.Extent()
	return lb + min(last, 0), extent + max(last, -last)
}

// A Landing is where a message goes: its buffer, or memory from which it is unpacked.
type Landing struct {
	comm.Buffer
	Staged // its t is nil if nothing is to be unpacked
}

// Outgoing returns n elements as bytes: where they lie if they are one run, else a packed copy.
func (t *Datatype) Outgoing(buf abi.Addr, n int) comm.Buffer {
	if b, ok := t.Dense(buf, n); ok {
		return b
	}
	return comm.Of(t.Packed(buf, n))
}

// Dense returns n elements where they lie, if they are one run of bytes.
func (t *Datatype) Dense(buf abi.Addr, n int) (comm.Buffer, bool) {
	at, ok := t.Contiguous(n)
	if !ok {
		return comm.Buffer{}, false
	}
	return buf.Plus(at).Buffer(n * t.Size()), true
}

// Packed returns a copy of n elements.
func (t *Datatype) Packed(buf abi.Addr, n int) []byte {
	b := make([]byte, n*t.Size())
	t.Pack(b, uintptr(buf), n)
	return b
}

// Incoming returns where n elements go. The caller calls Arrived when they have come.
func (t *Datatype) Incoming(buf abi.Addr, n int) Landing {
	if b, ok := t.Dense(buf, n); ok {
		return Landing{Buffer: b}
	}
	room := make([]byte, n*t.Size())
	return Landing{comm.Of(room), t.Stage(buf, n, room)}
}

// Arrived unpacks as many bytes as have come.
func (l *Landing) Arrived(bytes int) {
	if l.t != nil {
		l.t.Unpack(uintptr(l.buf), l.n, l.room[:min(bytes, len(l.room))])
	}
}

// Check returns what is wrong with a count and a datatype.
func Check(n int, t *Datatype) error {
	switch {
	case n < 0:
		return errs.New(errs.Count, "the count is %d: want 0 or more", n)
	case t == nil:
		return errs.New(errs.Type, "the datatype is not valid")
	case !t.committed:
		return errs.New(errs.Type, "the datatype is not committed")
	}
	return nil
}
