package shm

import (
	"math/bits"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file lets a peer get memory that only this rank maps. The kernel copies such memory once;
// the ring takes two copies. The place of such memory is a flagged address, with the number of
// recalls as in other places. No peer puts there: the owner could not take the memory back in time.
// crossmemory.go finds out whether the kernel permits such copies. If not, the message is sent as
// frames.

const (
	// sourceBits is the length of an address in a place, and isSource flags it.
	sourceBits = placeBits - 1
	isSource   = 1 << sourceBits
	// readChunk is the bytes that the kernel copies between two checks of the place.
	readChunk = 512 << 10
)

// addressOf returns the address in the place of a source.
func addressOf(place uint64) uintptr { return uintptr(place & (isSource - 1)) }

// Source implements transport.Getter.
func (t *Transport) Source(rank world.Rank, b mem.Buffer) uint64 {
	local := t.local(rank)
	if b.Size() == 0 || !b.IsHost() || local < 0 || t.cross.refusedBy(local) {
		return 0
	}
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.HostSlice()))))
	if bits.Len64(at+uint64(b.Size())) > sourceBits { // on a processor with longer addresses
		return 0
	}
	t.cross.Expose()
	return t.recalls(t.Local)<<placeBits | isSource | at
}

// Maps implements transport.Getter.
func (t *Transport) Maps(place uint64) bool { return place&isSource == 0 }

// readSource copies memory of p to dst.
func (t *Transport) readSource(p *peer, dst []byte, from uintptr) error {
	if !t.cross.Reaches(p.local) || t.cross.Read(p.local, dst, from) != nil {
		return transport.ErrRecalled // the message is sent as frames
	}
	return nil
}
