package shmcoll

import (
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/seg"
)

// This file reaches the vectors of other members: in the symmetric heap in place, and in memory
// that only their owner maps through the kernel, which copies from process to process.

// A CrossMemory reaches memory that only one member maps. transport/shm implements it.
type CrossMemory interface {
	// Expose lets the other members reach this member's memory.
	Expose()
	// Reaches reports whether this member can reach the memory of another, which has exposed it.
	Reaches(member int) bool
	// Has reports whether the kernel can reach b, memory of this member, for other members that
	// read b, and write to b if written is set. Some memory, as of some devices, is out of the
	// kernel's reach.
	Has(b []byte, written bool) bool
	Read(member int, dst []byte, from uintptr) error
	Write(member int, src []byte, to uintptr) error
}

// A side is either of a member's two vectors.
type side int

const (
	sends side = iota
	recvs
)

// A spot is a place in a member's vector: off bytes behind its beginning.
type spot struct {
	member int
	side   side
	off    int
}

const (
	// crossChunk is the bytes of a copy by the kernel (np=2, 128 KiB, 512 KiB and 2 MiB at a time:
	// alltoall of 1 MiB 158, 147 and 145 us, of 4 MiB 694, 656 and 665).
	crossChunk = 512 << 10
	// crossFold is the bytes of all operands that a member combines at a time. crossFoldLeast and
	// crossFoldMost are the limits for a single operand. The results are then still in the
	// second-level cache when they are copied to other members.
	crossFold, crossFoldLeast, crossFoldMost = 1 << 20, 8 << 10, 128 << 10
	// crossProgress is the number of bytes that a member copies between two calls that make
	// progress of other operations.
	crossProgress = 4 << 20
)

// foldChunk is the bytes of each operand that a member combines at a time.
func (c *Collectives) foldChunk() int {
	return min(max(crossFold/c.Size(), crossFoldLeast), crossFoldMost) &^ (mem.CacheLine - 1)
}

// reachable reports whether all members can reach each other's memory. The first call finds out, in
// a step of its own.
func (c *Collectives) reachable() (bool, error) {
	if c.asked || c.cross == nil {
		return c.crosses, nil
	}
	c.cross.Expose()
	if err := c.Barrier(); err != nil {
		return false, err
	}
	mine := [1]byte{1}
	for j := range c.Size() {
		if j != c.Me() && !c.cross.Reaches(j) {
			mine[0] = 0
		}
	}
	s, err := c.Exchange(mine[:], true)
	if err != nil {
		return false, err
	}
	c.asked, c.crosses = true, true
	for j := range c.Size() {
		c.crosses = c.crosses && c.Payload(j, s, 0, 1)[0] == 1
	}
	return c.crosses, nil
}

// has reports whether others read or write a vector of a member.
func (c *Collectives) has(member int, v side) bool { return c.places[member][v] != seg.Nowhere }

// at returns n bytes from a spot on, nil if only another member maps them.
func (c *Collectives) at(x spot, n int) []byte {
	place := c.places[x.member][x.side]
	if !place.Private() {
		return place.At(c.heaps[x.member], x.off, n)
	}
	if x.member == c.Me() {
		return c.own[x.side][x.off:][:n]
	}
	return nil
}

// get returns n bytes from a spot on, at most foldChunk: in place, or copied to scratch memory.
func (c *Collectives) get(x spot, n int) ([]byte, error) {
	if b := c.at(x, n); b != nil {
		return b, nil
	}
	b := c.scratch(x.member)[:n]
	return b, c.fetch(b, x, false)
}

// fetch copies from a spot on to dst.
func (c *Collectives) fetch(dst []byte, x spot, nonTemporal bool) error {
	if src := c.at(x, len(dst)); src != nil {
		copyShared(dst, src, nonTemporal)
		return nil
	}
	from := c.places[x.member][x.side].Address()
	for lo := 0; lo < len(dst); lo += crossChunk {
		if err := c.makeProgress(x.member, lo); err != nil {
			return err
		}
		b := dst[lo:min(lo+crossChunk, len(dst))]
		if err := c.cross.Read(x.member, b, from+uintptr(x.off+lo)); err != nil {
			return c.missing(x.member, err)
		}
	}
	return nil
}

// makeProgress lets other operations progress now and then, when done bytes have been copied.
func (c *Collectives) makeProgress(member, done int) error {
	if done == 0 || done%crossProgress != 0 {
		return nil
	}
	return c.TryProgress(member)
}

// missing returns the error of a failed transfer: if the member has failed earlier, its memory may
// be gone, and the member's failure is the reason.
func (c *Collectives) missing(member int, err error) error {
	if c.IsShut(member) {
		return c.AwaitError(member)
	}
	return c.Unreachable(member, err)
}

// put copies src to a spot.
func (c *Collectives) put(x spot, src []byte, nonTemporal bool) error {
	if dst := c.at(x, len(src)); dst != nil {
		copyShared(dst, src, nonTemporal)
		return nil
	}
	to := c.places[x.member][x.side].Address()
	for lo := 0; lo < len(src); lo += crossChunk {
		if err := c.makeProgress(x.member, lo); err != nil {
			return err
		}
		if !c.MayWrite(x.member) { // its collective has failed
			return c.AwaitError(x.member)
		}
		err := c.cross.Write(x.member, src[lo:min(lo+crossChunk, len(src))], to+uintptr(x.off+lo))
		if c.Written(); err != nil {
			return c.missing(x.member, err)
		}
	}
	return nil
}

// move copies n bytes between two spots, either of which is this member's.
func (c *Collectives) move(to, from spot, n int, nonTemporal bool) error {
	if src := c.at(from, n); src != nil {
		return c.put(to, src, nonTemporal)
	}
	return c.fetch(c.at(to, n), from, nonTemporal)
}

// scratch returns foldChunk bytes, separate for each member.
func (c *Collectives) scratch(member int) []byte {
	if c.fetched[member] == nil {
		b, _ := mem.Host.Alloc(mem.C128, c.foldChunk()/mem.C128.Size()) // so few bytes can be had
		c.fetched[member] = b.HostSlice()
	}
	return c.fetched[member]
}

// A span is the place of a vector that the kernel is known to reach.
type span struct {
	at uintptr
	n  int
}

// kernelReaches reports whether the kernel reaches b, a vector of this member, for other members.
// The kernel is asked again for another vector.
func (c *Collectives) kernelReaches(v side, b []byte) bool {
	it := span{uintptr(unsafe.Pointer(unsafe.SliceData(b))), len(b)}
	if c.known[v] != it {
		if !c.cross.Has(b, v == recvs) {
			return false
		}
		c.known[v] = it
	}
	return true
}
