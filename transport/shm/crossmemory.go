package shm

import (
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"gompi/internal/world"
	"gompi/transport"
)

// A CrossMemory reaches memory that only one rank of this host maps: the kernel copies it from
// process to process. Methods may be called from any goroutine.
//
// # Whether it is the peer's memory
//
// The kernel may refuse, and the number of a process may mean another one: ranks of one host may be
// in different namespaces of processes. So each rank publishes where a proof of its own lies and
// what it is, and who reaches for its memory reads that first. If a rank cannot, or finds something
// else, it says in its line that it reaches nothing, and peers offer it no more.
//
// While a peer is known to live, its number is not another process's: it lives until its agent has
// reaped it and has said so. Between these two the kernel would have to use up all numbers.
type CrossMemory struct {
	local world.LocalRank
	lines []line
	pid   func(world.LocalRank) int // nil where ranks are not to be reached
	peers []atomic.Uint32           // an access, by local rank
	once  sync.Once
	proof [2]proof // the first proves that this process is the rank; peers write to the second
}

// An access specifies whether this rank can reach a peer's memory.
type access = uint32

const (
	untried access = iota
	granted
	refused
)

type proof [16]byte

// Expose lets the peers reach this rank's memory. It is called before the first of them gets
// an address, or is asked to reach for it.
func (m *CrossMemory) Expose() {
	m.once.Do(func() {
		rand.Read(m.proof[0][:])
		own := &m.lines[m.local]
		own.proof = m.proof[0]
		own.proofAt.Store(uintptr(unsafe.Pointer(&m.proof[0])))
		allowReading()
	})
}

// Reaches reports whether this rank can reach the memory of a peer that has exposed its own. The
// first call for a peer finds out.
func (m *CrossMemory) Reaches(peer world.LocalRank) bool {
	if a := m.peers[peer].Load(); a != untried {
		return a == granted
	}
	if !m.proven(peer) {
		m.peers[peer].Store(refused)
		m.lines[m.local].reachesNothing.Store(1)
		return false
	}
	m.peers[peer].Store(granted)
	return true
}

func (m *CrossMemory) proven(peer world.LocalRank) bool {
	var found proof
	line := &m.lines[peer]
	at := line.proofAt.Load()
	if m.pid == nil || at == 0 || readMemory(m.pid(peer), found[:], at) != nil || found != line.proof {
		return false
	}
	return writeMemory(m.pid(peer), found[:], at+unsafe.Sizeof(found)) == nil
}

// refusedBy reports whether a peer has found that it reaches nothing.
func (m *CrossMemory) refusedBy(peer world.LocalRank) bool {
	return m.pid == nil || m.lines[peer].reachesNothing.Load() != 0
}

// Has reports whether the kernel reaches b, memory of this process, for peers that read it, and
// write to it if written is set. Such memory can be written to.
func (m *CrossMemory) Has(b []byte, written bool) bool {
	var first [1]byte
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if readMemory(os.Getpid(), first[:], at) != nil {
		return false
	}
	return !written || writeMemory(os.Getpid(), first[:], at) == nil
}

// Read fills dst with memory of a peer that this rank Reaches. It returns transport.ErrGone if
// there is no such process any more, and another error if it does not map all of that memory.
func (m *CrossMemory) Read(peer world.LocalRank, dst []byte, from uintptr) error {
	return gone(readMemory(m.pid(peer), dst, from))
}

// Write stores src to memory of a peer that this rank Reaches. Its errors are those of Read.
func (m *CrossMemory) Write(peer world.LocalRank, src []byte, to uintptr) error {
	return gone(writeMemory(m.pid(peer), src, to))
}

// ReadSpans is Read from some spans, one behind the other, which are as long as dst. It changes
// from. It takes a system call for 1024 of them.
func (m *CrossMemory) ReadSpans(peer world.LocalRank, dst []byte, from []Span) error {
	return gone(readSpans(m.pid(peer), dst, from))
}

// WriteSpans is the reverse of ReadSpans.
func (m *CrossMemory) WriteSpans(peer world.LocalRank, src []byte, to []Span) error {
	return gone(writeSpans(m.pid(peer), src, to))
}

func gone(err error) error {
	if errors.Is(err, errGone) {
		return transport.ErrGone
	}
	return err
}
