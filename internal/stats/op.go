package stats

import (
	"unsafe"

	"gompi/internal/calls"
)

// An Op is the function of a call: a calls.Kind, with Nonblocking or not, or a function below.
type Op uint8

// Nonblocking is added to the kind of a nonblocking collective.
const Nonblocking Op = 64

// The functions besides collectives.
const (
	Send Op = 128 + iota
	Ssend
	Recv
	Sendrecv
	Probe
	Iprobe
	Mprobe
	Improbe
	Mrecv
	Isend
	Issend
	Irecv
	Wait
	Test
	WaitAll
	WaitAny
	WaitSome
)

var opNames = [...]string{
	"send", "ssend", "recv", "sendrecv", "probe", "iprobe", "mprobe", "improbe", "mrecv", "isend", "issend", "irecv",
	"wait", "test", "waitall", "waitany", "waitsome",
}

func (o Op) String() string {
	switch {
	case o >= Send:
		return opNames[o-Send]
	case o >= Nonblocking:
		return "i" + calls.Kind(o-Nonblocking).String()
	}
	return calls.Kind(o).String()
}

func (a *area) indexOf(s *site) int32 {
	return int32((uintptr(unsafe.Pointer(s)) - uintptr(unsafe.Pointer(a.sites))) / unsafe.Sizeof(*s))
}
