package dtypes

import (
	"sync"
	"sync/atomic"

	"gompi/comm"
	"gompi/comm/internal/layout"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/attrs"
	"gompi/comm/internal/mpi/datatype"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/table"
	"gompi/internal/mem"
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
	last      atomic.Pointer[laid]
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

// Buffer returns n elements as bytes that messages take: where they lie. It is kept for the next
// call with the same arguments, which programs make most.
func (t *Datatype) Buffer(buf abi.Addr, n int) comm.Buffer {
	if b, ok := t.Dense(buf, n); ok {
		return b
	}
	if l := t.last.Load(); l != nil && l.buf == buf && l.n == n {
		return l.Buffer
	}
	l := &laid{layout.Lay(uintptr(buf), nil, t.Layout(n), mem.U8, n*t.Size(), false), buf, n}
	t.last.Store(l)
	return l.Buffer
}

// LoopBuffer returns bytes in runs of run bytes, stride bytes apart, the first at buf, as messages
// take them.
func LoopBuffer(buf abi.Addr, bytes, run, stride int) comm.Buffer {
	if run == bytes {
		return buf.Buffer(bytes)
	}
	l := layout.Loop{Count: bytes / run, Each: run, Stride: stride}
	return layout.Lay(uintptr(buf), nil, l.Layout(), mem.U8, bytes, false)
}

// A laid is n elements at buf that are not one run.
type laid struct {
	comm.Buffer
	buf abi.Addr
	n   int
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
