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

// A CrossMemory accesses memory that only one rank of this host maps: the kernel copies from
// process to process. Methods may be called from any goroutine.
//
// # Whether the memory is the peer's
//
// The kernel may refuse, and a process number may mean another process: ranks of one host may be in
// different PID namespaces. So each rank publishes a proof and the proof's address, and a peer
// reads the proof at that address first. A rank that cannot read the proof, or finds other bytes,
// sets reachesNothing in its own line, and peers offer such memory to that rank no more.
//
// While a peer is known to live, no other process has its number: the number stays in use until the
// agent has reaped the peer and reported the death. Between these two events, the kernel would have
// to use up all numbers.
type CrossMemory struct {
	local world.LocalRank
	lines []line
	pid   func(world.LocalRank) int // nil if ranks must not be reached
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

// Expose lets the peers reach this rank's memory. It is called before any peer gets an address or
// is asked to reach for one.
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

// refusedBy reports whether a peer has found that it cannot reach others' memory.
func (m *CrossMemory) refusedBy(peer world.LocalRank) bool {
	return m.pid == nil || m.lines[peer].reachesNothing.Load() != 0
}

// Has reports whether the kernel can read b, memory of this process, and write to b if written is
// set. Has stores to b only the byte that it has read.
func (m *CrossMemory) Has(b []byte, written bool) bool {
	var first [1]byte
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if readMemory(os.Getpid(), first[:], at) != nil {
		return false
	}
	return !written || writeMemory(os.Getpid(), first[:], at) == nil
}

// Read fills dst with memory of a peer that this rank Reaches. It returns transport.ErrGone if the
// process has ended, and another error if the process does not map all of that memory.
func (m *CrossMemory) Read(peer world.LocalRank, dst []byte, from uintptr) error {
	return gone(readMemory(m.pid(peer), dst, from))
}

// Write stores src to memory of a peer that this rank Reaches. It returns the same errors as Read.
func (m *CrossMemory) Write(peer world.LocalRank, src []byte, to uintptr) error {
	return gone(writeMemory(m.pid(peer), src, to))
}

// ReadSpans is Read from consecutive spans, together as long as dst. It changes from, and takes a
// system call per 1024 spans.
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
