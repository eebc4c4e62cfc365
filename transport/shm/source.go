package shm

import (
	"crypto/rand"
	"math/bits"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/procmem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file lets a peer get memory that only this rank maps: the kernel copies it, once, where
// through the ring it is copied twice. The place of such memory is an address, flagged, and as in
// other places the number of recalls. Nobody puts there: the owner could not take it back in time.
//
// # Whether it is the peer's memory
//
// The kernel may refuse, and the number of a process may mean another one: ranks of one host may be
// in different namespaces of processes. So each rank publishes where a proof of its own lies and
// what it is, and a reader reads that first. If it cannot, or finds something else, the message
// goes the other way, and the reader says in its line that it reads nothing: peers offer it no more.
//
// While a peer is known to live, its number is not another process's: it lives until its agent has
// reaped it and has said so. Between these two the kernel would have to use up all numbers.

const (
	// sourceBits is the length of an address in a place, and isSource flags it.
	sourceBits = placeBits - 1
	isSource   = 1 << sourceBits
	// readChunk is how much the kernel copies between looks at whether it is still wanted.
	readChunk = 512 << 10
)

// An access says whether this rank can read a peer's memory.
type access uint8

const (
	untried access = iota
	granted
	refused
)

type proof [16]byte

// expose publishes this rank's proof, and lets its peers read its memory, before the first is told
// where some lies.
func (t *Transport) expose() {
	t.exposed = true
	rand.Read(t.proof[:])
	own := &t.lines[t.Local]
	own.proof = t.proof
	own.proofAt.Store(uintptr(unsafe.Pointer(&t.proof)))
	procmem.Allow()
}

// Source implements transport.Getter.
func (t *Transport) Source(rank world.Rank, b mem.Buffer) uint64 {
	local := t.local(rank)
	if t.PID == nil || b.Size() == 0 || !b.IsHost() || local < 0 || t.lines[local].readsNothing.Load() != 0 {
		return 0
	}
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.HostSlice()))))
	if bits.Len64(at+uint64(b.Size())) > sourceBits { // of a processor with longer addresses
		return 0
	}
	if !t.exposed {
		t.expose()
	}
	return t.recalls(t.Local)<<placeBits | isSource | at
}

// readSource copies memory of p to dst.
func (t *Transport) readSource(p *peer, dst []byte, from uintptr) error {
	if p.access == untried {
		p.access = t.try(p)
	}
	if p.access == refused || procmem.Read(t.PID(p.local), dst, from) != nil {
		return transport.ErrRecalled // the message goes the other way
	}
	return nil
}

// try finds out whether this rank can read p's memory.
func (t *Transport) try(p *peer) access {
	var found proof
	if line := &t.lines[p.local]; t.PID != nil && procmem.Read(t.PID(p.local), found[:], line.proofAt.Load()) == nil && found == line.proof {
		return granted
	}
	t.lines[t.Local].readsNothing.Store(1)
	return refused
}
