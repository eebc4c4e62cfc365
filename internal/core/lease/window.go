package lease

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Window is C's state for accesses to the memory of a window that this process has, too. A Window
// is never recalled. C and Go both change the epochs and the lock holders, which only the
// synchronizing thread accesses; all other fields are constant until the window is freed.
//
//c:struct gompi_window
type Window struct {
	//c:type uint32_t *
	broken unsafe.Pointer // a word, not 0 when the window is broken
	parts  *Part
	ranks  int32

	Left      uint32 // calls that synchronize until C enters Go, which polls
	AllDirect bool   // all parts are
	Local     bool   // locks are words in memory

	Fenced  bool // MPI's epochs: all parts may be accessed, by a fence
	All     bool // by MPI_Win_lock_all
	Started bool // MPI_Win_start was called

	pins runtime.Pinner // Go's
}

// A Part is the memory of a rank.
//
//c:struct gompi_part
type Part struct {
	//c:type uint8_t *
	Here       uintptr // this process's address, if Direct
	Size, Unit int     // bytes, and how many of them offsets count
	Control    *Control
	Direct     bool // accesses are loads and stores
	Shared     bool // other ranks access the part directly, too, so that accumulates are atomic instructions
	Held       Hold // this rank's lock
	Locked     bool // MPI's epochs
	Started    bool
	_          [3]byte
}

// A Hold is this rank's lock of a part.
type Hold uint8

//c:const GOMPI_HOLD_
const (
	Unlocked Hold = iota
	ForReading
	ForWriting
	Unchecked // without a lock, since the caller says that nothing conflicts
)

// polled is the number of times that C synchronizes before entering Go.
const polled = 4096

// NewWindow returns C's state for a window of parts, broken when the word broken is not 0.
func NewWindow(parts []Part, broken *atomic.Bool) *Window {
	return &Window{broken: unsafe.Pointer(broken), parts: unsafe.SliceData(parts), ranks: int32(len(parts)),
		Left: polled}
}

// Parts returns the parts, by rank.
func (w *Window) Parts() []Part { return unsafe.Slice(w.parts, w.ranks) }

// Polls reports, at intervals, that a synchronizing call has to poll, since a program may loop over
// such calls until another rank acts.
func (w *Window) Polls() bool {
	if w.Left > 0 {
		w.Left--
		return false
	}
	w.Left = polled
	return true
}

// Window lets C access w by number slot. The caller keeps w until FreeWindow.
func (l *Lease) Window(slot int, w *Window) {
	if l == nil || slot >= Windows {
		return
	}
	w.pins.Pin(w)
	w.pins.Pin(w.parts)
	w.pins.Pin(w.broken)
	l.rec.windows[slot].Store(uintptr(unsafe.Pointer(w)))
}

// FreeWindow makes C leave accesses to slot, the number of w, to Go.
func (l *Lease) FreeWindow(slot int, w *Window) {
	if l != nil && slot < Windows {
		l.rec.windows[slot].Store(0)
		w.pins.Unpin()
	}
}

// Windows bounds the number of windows that C knows.
//
//c:const GOMPI_LEASE_
const Windows = 256

// A Control is the words of a part by which ranks exclude each other, in memory that all of them
// share. Each group has a cache line of its own.
//
//c:struct gompi_window_control
type Control struct {
	Element atomic.Uint32 // lock of accumulates without an instruction: 1 + the rank that holds it
	_       [60]byte

	// A lock of readers and writers in the order of arrival. An arriving rank takes the next
	// ticket. A reader begins when all earlier readers have begun and all earlier writers have
	// ended: begun is its ticket. A writer begins when all earlier ranks have ended: ended is its
	// ticket.
	tickets atomic.Uint32
	_       [60]byte
	begun   atomic.Uint32
	ended   atomic.Uint32
	_       [56]byte
}

// Arrive takes a ticket.
func (c *Control) Arrive() uint32 { return c.tickets.Add(1) - 1 }

// MayBegin reports whether a ticket may begin.
func (c *Control) MayBegin(ticket uint32, how Hold) bool {
	if how == ForWriting {
		return c.ended.Load() == ticket
	}
	return c.begun.Load() == ticket
}

// Begin begins to hold the lock: the next reader need not wait for a reader.
func (c *Control) Begin(how Hold) {
	if how != ForWriting {
		c.begun.Add(1)
	}
}

// End gives the lock back.
func (c *Control) End(how Hold) {
	if how == ForWriting {
		c.begun.Add(1)
	}
	c.ended.Add(1)
}
