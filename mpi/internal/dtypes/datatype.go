package dtypes

import (
	"sync"
	"sync/atomic"

	"gompi/internal/core/layout"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/typemap"
)

var Registry = abi.NewRegistry(abi.DatatypeNull, func(t *Datatype) abi.Handle { return t.Handle })

func init() {
	for t := range typemap.All() {
		b := t.Basic()
		Registry.Set(abi.Handle(b.ID), &Datatype{Type: t, Handle: abi.Handle(b.ID), name: b.Name, committed: true})
	}
}

// A Datatype is a datatype with a handle.
type Datatype struct {
	*typemap.Type
	Handle    abi.Handle
	name      string
	committed bool
	last      atomic.Pointer[laid]
	attrs.Attributes

	mu      sync.Mutex // guards name and the following
	operand bool       // of an operator of the program's, which gets the handle
	inCalls int        // of such operators, now
	freed   bool
}

// Operand reserves the handle for t as long as anything refers to t, even if the program frees the
// handle.
func (t *Datatype) Operand() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operand = true
}

// During calls f, an operator that gets t's handle. Meanwhile the handle is valid, even if the
// program has freed it: reductions under way end as if the handle were not freed (MPI-5.0,
// section 5.1.9).
func (t *Datatype) During(f func()) {
	if t.Basic() != nil {
		f()
		return
	}
	t.mu.Lock()
	if t.inCalls++; t.freed {
		Registry.Restore(t.Handle, t)
	}
	t.mu.Unlock()
	f()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inCalls--; t.freed && t.inCalls == 0 {
		Registry.Restore(t.Handle, nil)
	}
}

// release takes the handle back, once.
func (t *Datatype) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.freed:
	case t.operand:
		Registry.RemoveLate(t.Handle, t)
		if t.inCalls > 0 {
			Registry.Restore(t.Handle, t)
		}
	default:
		Registry.Remove(t.Handle)
	}
	t.freed = true
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

// Arrive unpacks room into the elements.
func (s *Staged) Arrive() { s.t.Unpack(uintptr(s.buf), s.n, s.room) }

// Span returns the offset of the data of an array of n elements from the array's address, and the
// number of bytes that the data spans. n is 1 or more.
func (t *Datatype) Span(n int) (from, bytes int) {
	lb, extent := t.TrueExtent()
	last := (n - 1) * t.Extent()
	return lb + min(last, 0), extent + max(last, -last)
}

// Buffer returns n elements in place, as bytes that messages take. The Buffer is kept for the
// next call with the same arguments, the most frequent case.
func (t *Datatype) Buffer(buf abi.Addr, n int) mem.Buffer {
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
func LoopBuffer(buf abi.Addr, bytes, run, stride int) mem.Buffer {
	if run == bytes {
		return buf.Buffer(bytes)
	}
	l := layout.Loop{Count: bytes / run, Each: run, Stride: stride}
	return layout.Lay(uintptr(buf), nil, l.Layout(), mem.U8, bytes, false)
}

// A laid is n elements at buf that are not contiguous.
type laid struct {
	mem.Buffer
	buf abi.Addr
	n   int
}

// Dense returns n elements in place, if they are contiguous.
func (t *Datatype) Dense(buf abi.Addr, n int) (mem.Buffer, bool) {
	at, ok := t.Contiguous(n)
	if !ok {
		return mem.Buffer{}, false
	}
	return buf.Plus(at).Buffer(n * t.Size()), true
}

// Packed returns a copy of n elements.
func (t *Datatype) Packed(buf abi.Addr, n int) []byte {
	b := make([]byte, n*t.Size())
	t.Pack(b, uintptr(buf), n)
	return b
}

// none is the datatype of no elements.
var none = &Datatype{Type: new(typemap.Type), committed: true}

// Used returns t, or a datatype in its place if t is MPI_DATATYPE_NULL and there are no elements:
// MPICH's messages and some of its collectives do not look at t then.
func Used(n int, t *Datatype) *Datatype {
	if n == 0 && t == nil {
		return none
	}
	return t
}

// Check returns an error if a count or a datatype is not valid.
func Check(n int, t *Datatype) error { return CheckBlocks(1, n, t) }

// CheckBlocks is Check for consecutive blocks of n elements each.
func CheckBlocks(blocks, n int, t *Datatype) error {
	switch {
	case n < 0:
		return errs.New(errs.Count, "the count is %d: want 0 or more", n)
	case t == nil:
		return errs.New(errs.Type, "the datatype is not valid")
	case !t.committed:
		return errs.New(errs.Type, "the datatype is not committed")
	}
	if reach, ok := typemap.Times(n, max(t.Size(), t.Extent(), -t.Extent())); ok {
		if _, ok = typemap.Times(blocks, reach); ok {
			return nil
		}
	}
	return errs.New(errs.Count, "%d times %d elements of %d bytes: want fewer than 2^61 bytes in all", blocks,
		n, t.Extent())
}
