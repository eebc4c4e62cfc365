package rma

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unsafe"

	"gompi/internal/core/layout"
	"gompi/internal/mem"
)

// Operators of accumulates besides mem's.
const (
	Replace mem.Op = 254 // stores the operand (MPI_REPLACE)
	Fetch   mem.Op = 255 // stores nothing (MPI_NO_OP)
)

// A How is how an accumulate combines elements.
type How struct {
	Op   mem.Op
	Type mem.Type // of the elements; mem.NoType if Code names the operator
	Size int      // bytes of a packed element
	Code uint64   // for Config.Custom
}

// Of returns how op combines elements of a type.
func Of(op mem.Op, t mem.Type) How { return How{Op: op, Type: t, Size: t.Size()} }

// Defined reports whether there is such a combination.
func (h How) Defined() bool {
	return h.Op == Replace || h.Op == Fetch || h.Type == mem.NoType || h.Op.Defined(h.Type) && h.Op != mem.Avg
}

// byWord reports whether elements of p at an address, n bytes in a row, are combined by atomic
// instructions. The answer has to be the same for all accumulates of a type to an element. Memory
// that no other rank maps has all its accumulates from one process: the lock is faster for many.
func (h How) byWord(p *part, at uintptr, n int) bool {
	return p.Shared && h.Type != mem.NoType && (h.Size == 4 || h.Size == 8) && at%uintptr(h.Size) == 0 && n%h.Size == 0
}

// combine combines the elements that l describes at an address of this process, in p, with the
// packed bytes in, nil for Fetch. It stores the old elements into out, unless that is nil.
func (w *Window) combine(p *part, at uintptr, l *layout.Layout, in, out []byte, how How) (err error) {
	size := l.Size()
	if off, ok := l.Contiguous(); ok {
		return w.combineRun(p, at+uintptr(off), size, in, out, how)
	}
	if !p.Shared || how.Type == mem.NoType || how.Size != 4 && how.Size != 8 {
		return w.holding(p.Control, func() { w.combineLocked(at, l, in, out, how) })
	}
	pos := 0
	l.Runs(func(off, n int, _ layout.Element) {
		if err == nil {
			err = w.combineRun(p, at+uintptr(off), n, section(in, pos, n), section(out, pos, n), how)
		}
		pos += n
	})
	return err
}

// section returns n bytes of b, nil if b is.
func section(b []byte, at, n int) []byte {
	if b == nil {
		return nil
	}
	return b[at : at+n]
}

// combineRun is combine for n bytes in a row.
func (w *Window) combineRun(p *part, at uintptr, n int, in, out []byte, how How) error {
	switch {
	case n == 0:
	case !how.byWord(p, at, n):
		run := layout.Run(n)
		return w.holding(p.Control, func() { w.combineLocked(at, &run, in, out, how) })
	case how.Size == 8:
		combineWords64(at, n, in, out, how)
	default:
		combineWords32(at, n, in, out, how)
	}
	return nil
}

// combineLocked combines packed copies, with the part's lock held.
func (w *Window) combineLocked(at uintptr, l *layout.Layout, in, out []byte, how How) {
	n := l.Size()
	if off, ok := l.Contiguous(); ok && how.inPlace(at+uintptr(off), in) {
		here := layout.BytesAt(at+uintptr(off), n)
		copy(out, here)
		w.reduce(here, in, how)
		return
	}
	old := out
	if old == nil {
		old = make([]byte, n)
	}
	l.Pack(old, at, 0)
	switch {
	case how.Op == Fetch:
	case how.Op == Replace:
		l.Unpack(at, in, 0)
	default:
		result := append(make([]byte, 0, n), old...)
		w.reduce(result, append(make([]byte, 0, n), in...), how)
		l.Unpack(at, result, 0)
	}
}

// inPlace reports whether the operands may be combined in place: kernels need aligned operands.
func (h How) inPlace(at uintptr, in []byte) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(in)))
	return h.Type != mem.NoType && h.Op != Fetch && h.Op != Replace && (at|from)%16 == 0
}

// reduce stores acc op in into acc. Both are aligned for any type.
func (w *Window) reduce(acc, in []byte, how How) {
	if how.Type == mem.NoType {
		w.cfg.Custom(how.Code)(acc, in)
		return
	}
	n := len(acc) / how.Size
	a := mem.HostBytes(how.Type, n, acc)
	if err := mem.Reduce(how.Op, a, a, mem.HostBytes(how.Type, n, in)); err != nil {
		panic(err) // How.Defined says no
	}
}

// A reducer combines an element of up to 8 bytes.
type reducer struct{ acc, in uint64 }

var reducers = sync.Pool{New: func() any { return new(reducer) }}

func (r *reducer) buffer(word *uint64, t mem.Type) mem.Buffer {
	return mem.HostBytes(t, 1, unsafe.Slice((*byte)(unsafe.Pointer(word)), t.Size()))
}

// inOneStep64 combines by an atomic instruction, and reports whether there is such an instruction.
func inOneStep64(p *uint64, x uint64, how How) (old uint64, ok bool) {
	switch integer := isInteger(how.Type); {
	case how.Op == Fetch:
		return atomic.LoadUint64(p), true
	case how.Op == Replace:
		return atomic.SwapUint64(p, x), true
	case how.Op == mem.Sum && integer:
		return atomic.AddUint64(p, x) - x, true
	case how.Op == mem.BAnd && integer:
		return atomic.AndUint64(p, x), true
	case how.Op == mem.BOr && integer:
		return atomic.OrUint64(p, x), true
	}
	return 0, false
}

func inOneStep32(p *uint32, x uint32, how How) (old uint32, ok bool) {
	switch integer := isInteger(how.Type); {
	case how.Op == Fetch:
		return atomic.LoadUint32(p), true
	case how.Op == Replace:
		return atomic.SwapUint32(p, x), true
	case how.Op == mem.Sum && integer:
		return atomic.AddUint32(p, x) - x, true
	case how.Op == mem.BAnd && integer:
		return atomic.AndUint32(p, x), true
	case how.Op == mem.BOr && integer:
		return atomic.OrUint32(p, x), true
	}
	return 0, false
}

func isInteger(t mem.Type) bool {
	switch t {
	case mem.I32, mem.I64, mem.U32, mem.U64:
		return true
	}
	return false
}

// combineWords64 combines words of 8 bytes, each by itself.
func combineWords64(at uintptr, n int, in, out []byte, how How) {
	var r *reducer
	for i := 0; i < n; i += 8 {
		p := (*uint64)(unsafe.Pointer(&layout.BytesAt(at+uintptr(i), 8)[0]))
		var x uint64
		if in != nil {
			x = binary.NativeEndian.Uint64(in[i:])
		}
		old, ok := inOneStep64(p, x, how)
		if !ok {
			if r == nil {
				r = reducers.Get().(*reducer)
			}
			old = r.swap64(p, x, how)
		}
		if out != nil {
			binary.NativeEndian.PutUint64(out[i:], old)
		}
	}
	if r != nil {
		reducers.Put(r)
	}
}

func (r *reducer) swap64(p *uint64, x uint64, how How) (old uint64) {
	acc, in := r.buffer(&r.acc, how.Type), r.buffer(&r.in, how.Type)
	r.in = x
	for {
		old = atomic.LoadUint64(p)
		r.acc = old
		if err := mem.Reduce(how.Op, acc, acc, in); err != nil {
			panic(err) // How.Defined says no
		}
		if atomic.CompareAndSwapUint64(p, old, r.acc) {
			return old
		}
	}
}

// combineWords32 combines words of 4 bytes, each by itself.
func combineWords32(at uintptr, n int, in, out []byte, how How) {
	var r *reducer
	for i := 0; i < n; i += 4 {
		p := (*uint32)(unsafe.Pointer(&layout.BytesAt(at+uintptr(i), 4)[0]))
		var x uint32
		if in != nil {
			x = binary.NativeEndian.Uint32(in[i:])
		}
		old, ok := inOneStep32(p, x, how)
		if !ok {
			if r == nil {
				r = reducers.Get().(*reducer)
			}
			old = r.swap32(p, x, how)
		}
		if out != nil {
			binary.NativeEndian.PutUint32(out[i:], old)
		}
	}
	if r != nil {
		reducers.Put(r)
	}
}

func (r *reducer) swap32(p *uint32, x uint32, how How) (old uint32) {
	acc, in := r.buffer(&r.acc, how.Type), r.buffer(&r.in, how.Type)
	first := func(word *uint64) *uint32 { return (*uint32)(unsafe.Pointer(word)) }
	*first(&r.in) = x
	for {
		old = atomic.LoadUint32(p)
		*first(&r.acc) = old
		if err := mem.Reduce(how.Op, acc, acc, in); err != nil {
			panic(err) // How.Defined says no
		}
		if atomic.CompareAndSwapUint32(p, old, *first(&r.acc)) {
			return old
		}
	}
}

// compareAndSwap stores x at an address if the bytes there equal want, and returns the old bytes
// in out. how has the type.
func (w *Window) compareAndSwap(p *part, at uintptr, x, want, out []byte, how How) error {
	switch {
	case !how.byWord(p, at, how.Size):
		return w.holding(p.Control, func() {
			here := layout.BytesAt(at, how.Size)
			copy(out, here)
			if string(out) == string(want) {
				copy(here, x)
			}
		})
	case how.Size == 8:
		binary.NativeEndian.PutUint64(out, swapIf(atomic.LoadUint64, atomic.CompareAndSwapUint64,
			(*uint64)(unsafe.Pointer(&layout.BytesAt(at, 8)[0])),
			binary.NativeEndian.Uint64(want), binary.NativeEndian.Uint64(x)))
	default:
		binary.NativeEndian.PutUint32(out, swapIf(atomic.LoadUint32, atomic.CompareAndSwapUint32,
			(*uint32)(unsafe.Pointer(&layout.BytesAt(at, 4)[0])),
			binary.NativeEndian.Uint32(want), binary.NativeEndian.Uint32(x)))
	}
	return nil
}

// swapIf stores x at p if p holds want, and returns the old value.
func swapIf[T comparable](load func(*T) T, swap func(p *T, old, new T) bool, p *T, want, x T) T {
	for {
		old := load(p)
		if old != want || swap(p, want, x) {
			return old
		}
	}
}
