package mpi

import (
	"unsafe"

	"gompi/mpi/internal/abi"
)

// Args are the arguments of a call, as the face stores them: numbers, addresses and the numbers
// of handles. They stay in C's memory. The methods for objects with handles are in dispatch.go.
type Args [24]int64

func (a *Args) int(i int) int           { return int(a[i]) }
func (a *Args) flag(i int) bool         { return a[i] != 0 }
func (a *Args) address(i int) abi.Addr  { return abi.Addr(a[i]) }
func (a *Args) array(i int) abi.Array   { return abi.Array(a[i]) }
func (a *Args) text(i int) abi.Text     { return abi.Text(a[i]) }
func (a *Args) handle(i int) abi.Handle { return abi.Handle(a[i]) }

func (a *Args) handles(i, n int) []abi.Handle {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice((*abi.Handle)(a.address(i).Pointer()), n)
}

func (a *Args) status(i int) *abi.Status { return (*abi.Status)(a.address(i).Pointer()) }

// statuses returns nil if they are to be ignored.
func (a *Args) statuses(i, n int) []abi.Status {
	if n <= 0 || a[i] == 0 {
		return nil
	}
	return unsafe.Slice(a.status(i), n)
}

func (a *Args) setInt(i, x int)               { a[i] = int64(x) }
func (a *Args) setAddress(i int, x abi.Addr)  { a[i] = int64(x) }
func (a *Args) setHandle(i int, h abi.Handle) { a[i] = int64(h) }

func (a *Args) setFlag(i int, x bool) {
	a[i] = 0
	if x {
		a[i] = 1
	}
}
