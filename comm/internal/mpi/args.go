package mpi

import (
	"unsafe"

	"gompi/comm"
)

// Args are the arguments of one call, as the face stores them: numbers, addresses and the numbers
// of handles. They stay in C's memory.
type Args [24]int64

// An Addr is an address of C: a number, not a pointer, so that MPI_BOTTOM and MPI_IN_PLACE may be
// one.
type Addr uintptr

func (a Addr) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// bytes returns n bytes of memory.
func (a Addr) bytes(n int) []byte {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(a.pointer()), n)
}

// buffer returns n bytes of memory as comm wants them.
func (a Addr) buffer(n int) comm.Buffer { return comm.Of(a.bytes(n)) }

// plus returns the address n bytes behind a.
func (a Addr) plus(n int) Addr { return Addr(uintptr(a) + uintptr(n)) }

// An Array is the address of integers of C. Those of the forms for large counts have 64 bits, and
// are marked: only list takes them.
type Array Addr

const wide Array = 1 << 62

// ints returns n of them.
func (a Array) ints(n int) []int32 {
	if n <= 0 || a == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(Addr(a).pointer()), n)
}

// addresses returns n integers that are as long as an address (MPI_Aint).
func (a Array) addresses(n int) []int {
	if n <= 0 || a == 0 {
		return nil
	}
	return unsafe.Slice((*int)(Addr(a).pointer()), n)
}

// store stores as many of all as there is room for.
func (a Array) store(room int, all []int) {
	if a == 0 {
		return
	}
	for i, x := range all[:min(len(all), max(room, 0))] {
		a.ints(i + 1)[i] = int32(x)
	}
}

// list returns a copy of n of them.
func (a Array) list(n int) []int {
	if a&wide != 0 {
		return (a &^ wide).addressList(n)
	}
	all := make([]int, max(n, 0))
	for i, x := range a.ints(n) {
		all[i] = int(x)
	}
	return all
}

// addressList returns a copy of n integers that are as long as an address.
func (a Array) addressList(n int) []int { return append([]int(nil), a.addresses(n)...) }

// A Text is the address of a string of C.
type Text Addr

// String returns it, without the zero at its end.
func (t Text) String() string {
	if t == 0 {
		return ""
	}
	n := 0
	for p := Addr(t).pointer(); *(*byte)(unsafe.Add(p, n)) != 0; {
		n++
	}
	return string(Addr(t).bytes(n))
}

// set stores s, cut to room-1 bytes, and a zero, and returns how long it is without.
func (t Text) set(s string, room int) int {
	if t == 0 || room <= 0 {
		return 0
	}
	s = s[:min(len(s), room-1)]
	b := Addr(t).bytes(len(s) + 1)
	copy(b, s)
	b[len(s)] = 0
	return len(s)
}

// A Status is what MPI_Status says, in C's memory.
type Status struct {
	Source, Tag int32
	Error       int32 // -1: the caller's stays
	Cancelled   int32 // -1: all of the caller's stays
	Bytes       int64
}

func (a *Args) int(i int) int       { return int(a[i]) }
func (a *Args) flag(i int) bool     { return a[i] != 0 }
func (a *Args) address(i int) Addr  { return Addr(a[i]) }
func (a *Args) array(i int) Array   { return Array(a[i]) }
func (a *Args) text(i int) Text     { return Text(a[i]) }
func (a *Args) handle(i int) Handle { return Handle(a[i]) }

func (a *Args) handles(i, n int) []Handle {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*Handle)(a.address(i).pointer()), n)
}

func (a *Args) status(i int) *Status { return (*Status)(a.address(i).pointer()) }

// statuses returns nil if they are to be ignored.
func (a *Args) statuses(i, n int) []Status {
	if n <= 0 || a[i] == 0 {
		return nil
	}
	return unsafe.Slice(a.status(i), n)
}

func (a *Args) setInt(i, x int)           { a[i] = int64(x) }
func (a *Args) setAddress(i int, x Addr)  { a[i] = int64(x) }
func (a *Args) setHandle(i int, h Handle) { a[i] = int64(h) }
func (a *Args) setFlag(i int, x bool) {
	a[i] = 0
	if x {
		a[i] = 1
	}
}
