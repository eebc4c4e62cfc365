package abi

import (
	"gompi/internal/mem"
	"unsafe"
)

// An Addr is an address of C: a number, not a pointer, so that an Addr may be MPI_BOTTOM or
// MPI_IN_PLACE.
type Addr uintptr

func (a Addr) Pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// Bytes returns n bytes of memory.
func (a Addr) Bytes(n int) []byte {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(a.Pointer()), n)
}

// Buffer returns n bytes of memory as core wants them.
func (a Addr) Buffer(n int) mem.Buffer { return mem.Of(a.Bytes(n)) }

// Plus returns the address n bytes behind a.
func (a Addr) Plus(n int) Addr { return Addr(uintptr(a) + uintptr(n)) }

// In returns a, a function of the program's, with the number of its language in the upper byte,
// where the face finds the language at each call of the function.
func (a Addr) In(language int) Addr {
	if a == 0 {
		return 0
	}
	return a | Addr(language)<<56
}

// An Array is the address of integers of C. In forms for large counts the integers have 64 bits,
// and the Array is marked: only list takes such Arrays.
type Array Addr

const wide Array = 1 << 62

// Ints returns n of them.
func (a Array) Ints(n int) []int32 {
	if n <= 0 || a == 0 {
		return nil
	}
	return unsafe.Slice((*int32)(Addr(a).Pointer()), n)
}

// Addresses returns n integers that are as long as an address (MPI_Aint).
func (a Array) Addresses(n int) []int {
	if n <= 0 || a == 0 {
		return nil
	}
	return unsafe.Slice((*int)(Addr(a).Pointer()), n)
}

// Store stores as many of all as there is room for.
func (a Array) Store(room int, all []int) {
	if a == 0 {
		return
	}
	for i, x := range all[:min(len(all), max(room, 0))] {
		a.Ints(i + 1)[i] = int32(x)
	}
}

// List returns a copy of n of them. It is never nil: a graph without edges may have weights.
func (a Array) List(n int) []int { return a.Append(make([]int, 0, max(n, 0)), n) }

// Append appends a copy of n of them to list, zeros where there is no array.
func (a Array) Append(list []int, n int) []int {
	switch {
	case a&wide != 0:
		return append(list, (a &^ wide).Addresses(n)...)
	case a == 0:
		return append(list, make([]int, max(n, 0))...)
	}
	for _, x := range a.Ints(n) {
		list = append(list, int(x))
	}
	return list
}

// AddressList returns a copy of n integers that are as long as an address.
func (a Array) AddressList(n int) []int { return append([]int(nil), a.Addresses(n)...) }

// A Text is the address of a string of C.
type Text Addr

// String returns the text without the zero at its end.
func (t Text) String() string {
	if t == 0 {
		return ""
	}
	n := 0
	for p := Addr(t).Pointer(); *(*byte)(unsafe.Add(p, n)) != 0; {
		n++
	}
	return string(Addr(t).Bytes(n))
}

// Set stores s, cut to room-1 bytes, and a zero, and returns the stored length without the zero.
func (t Text) Set(s string, room int) int {
	if t == 0 || room <= 0 {
		return 0
	}
	s = s[:min(len(s), room-1)]
	b := Addr(t).Bytes(len(s) + 1)
	copy(b, s)
	b[len(s)] = 0
	return len(s)
}

// A Class is an error class (MPI_ERR_BUFFER), or a code that a program has added.
type Class int

// A Status is the content of MPI_Status, in C's memory.
//
//c:struct gompi_status
type Status struct {
	Source, Tag int32
	Error       int32 // -1: the caller's stays
	Cancelled   int32 // -1: all of the caller's stays
	Bytes       int64
}

// OfProcNull is the status of a receive from MPI_PROC_NULL, OfNothing the status of a null or
// inactive request: the empty status.
var (
	OfProcNull = Status{Source: ProcNull, Tag: AnyTag}
	OfNothing  = Status{Source: AnySource, Tag: AnyTag}
)

// Set stores a status, except its error. s is nil if ignored.
func (s *Status) Set(to Status) {
	if s != nil {
		to.Error = s.Error
		*s = to
	}
}
