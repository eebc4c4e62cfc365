// Package shmsync synchronises the ranks of a communicator that share a host, through flags in the
// host's segment, and gives them bounce buffers there. It sends no message and takes no lock.
// Package shmcoll does collectives on it.
//
// A member is a rank of the communicator on this host. Each has a Team (team.go), through which it
// fills steps and reads the others' steps. wait.go has the waits, and the comparison of calls;
// exchange.go steps in which every member sends data to all others; ring.go the bounce buffers;
// guard.go whether members may write to memory that only its owner maps; pool.go the Pool from
// which a rank takes the memory of its Teams.
//
// # Memory
//
// Each member has a block in its arena, and behind all blocks a large buffer. Only their owner
// writes to them, but for bounce buffers that two members exchange (ring.go).
//
//	offset   size       content of a block
//	0        8          waitingFor: 1 + the member whose flag the owner sleeps for, or 0
//	128      8          consumed: the last step of which the owner needs nothing more
//	256      8          resultReady: the last step of which the owner has reduced its share or
//	                    made its chunk
//	384      8          uses: a counter of takes and returns of the block
//	512      8          barrierFlag: the last step that member 0 has seen all members fill
//	640      8          writesTo: 1 + the member to whose own memory the owner writes, or 0
//	768      8          shut: not 0 when no member may write to the owner's own memory any more
//	896      64 x 128   heads, for the steps under way
//	9088     4 KiB      the small bounce buffer
//	13184    64 KiB     the L2 bounce buffer
//
//	offset   size       content of a head
//	0        8          step: the number of the step; stored last
//	8        8          callDigest: of all calls, this call included
//	16       16         the call, if the step is a collective's first, else 0
//	32       96         the payload, if short
//
// So a short payload takes a cache line, or two, which processors fetch together. Flags of
// different purposes are 128 bytes apart for the same reason. A longer payload goes through one of
// three bounce buffers, which are rings. The small buffer stays in the first-level caches of
// writer and reader (two ranks on cores that share a cache: 1 KiB through a ring of 64 KiB and of
// 4: allreduce 416 and 280 ns, reduce 460 and 320, bcast 366 and 255), and the L2 buffer in the
// second-level caches. The large buffer is larger than the second-level cache on purpose (see
// path.LargeBuffer). The first collective that needs the large buffers claims them; where any
// member gets no memory, all use the L2 buffer.
//
// # Steps
//
// A collective takes one step or several, as many on every member. All members count steps from 1,
// and know the maximal length of each step's payload, and so its place. In a step a member fills
// its head of number (step modulo 64) and its payload, and reads the others' heads and payloads.
// In a collective's first step every member fills its head, at least with its call. Its readers
// compare the call with their own.
//
// # Why no member reads too early or too late
//
// The writer stores the payload before the step, and the reader loads it after the step. The step
// is stored and loaded atomically: in Go's memory model, and for the processor, that orders the
// payload's stores before its loads.
//
// A head is filled again 64 steps later, and a part of a bounce buffer when the ring has gone
// round. By then every member must have read the old step. A writer knows that in one of two ways.
// A member stores consumed after reading a step, at least after every 16th step whose payload is in
// the head. And a member that has begun a collective has read all of the previous collective: so a
// collective of one step in which every member reads all others need not store consumed. A member's
// last step read only grows. So the writer keeps the least of all members in free, and looks again
// only when free is too small.
//
// Before a member writes to the bounce buffer that it has got from the other in exchange, it has
// itself read the step whose place it takes, a round before: at most half a ring is filled ahead of
// its reads. The other member has read its own data by the time at which it says so.
//
// There is no cycle of waiting members. Filling a step waits only for reads of older steps; reading
// a step waits only until the step is filled. No member fills so far ahead of its own reads that it
// would have to wait for itself, and each stores consumed also for steps of which it reads nothing.
// So of all waiting members, a member at the lowest step can continue.
//
// # Sleeping
//
// A member that has polled a flag often enough stores the flag's owner in waitingFor,
// marks itself asleep in its state line (package internal/seg), polls once more, and sleeps. After
// a member has stored a flag it loads waitingFor of all others, and wakes its waiters.
// All these operations are sequentially consistent: if the last poll did not see the flag, then
// waitingFor was stored before the flag, and the writer of the flag sees waitingFor.
//
// # The end
//
// A member that finds its communicator broken returns at once, in the middle of a step. Others may
// still read its block, and write to its bounce buffers. So a block is used again only when every
// other member has given up its own block, or is dead.
//
// A rank that fails while a Team is made does not know whether others have made the Team, and read
// the offered block. The rank gives that block back only with its part in the communicator by
// which they exchanged the offers (see Withhold). Digests begin with the communicator's id, so no
// member that is late even then takes steps of another Team for its own Team's. Nor does it write
// there: it looks whether the block is reused after it has seen the counter by which places are
// free (awaitReaders).
package shmsync

import (
	"sync/atomic"
	"unsafe"
)

// The layout of a block.
const (
	//c:const GOMPI_BLOCK_
	lineSize = 128
	//c:const GOMPI_BLOCK_
	depth = 64

	headsAt  = 7 * lineSize
	smallAt  = headsAt + depth*lineSize
	l2At     = smallAt + smallSize
	l2Size   = 64 << 10
	pageSize = 4096

	// The small buffer holds the payloads of at least three steps, of up to smallMost bytes. So
	// where all members read all, none waits for its place: when a step begins, all have read the
	// step before last.
	//
	//c:const GOMPI_BLOCK_
	smallMost = 1 << 10
	smallSize = 4 * smallMost

	// BlockSize is the bytes of a block.
	BlockSize = (l2At + l2Size + pageSize - 1) &^ (pageSize - 1)

	// InHead is the most bytes of a payload in a head.
	//
	//c:const GOMPI_BLOCK_
	InHead = lineSize - 32

	// soon is the number of steps that a member may acknowledge at once (see ConsumedSoon).
	//
	//c:const GOMPI_BLOCK_
	soon = 16

	// Depth is the number of heads: the head of a step is filled again this many steps later.
	Depth = depth
)

// flags is the beginning of a block.
//
//c:struct gompi_block
type flags struct {
	waitingFor  atomic.Uint64
	_           [lineSize - 8]byte
	consumed    atomic.Uint64
	_           [lineSize - 8]byte
	resultReady atomic.Uint64
	_           [lineSize - 8]byte
	uses        atomic.Uint64
	_           [lineSize - 8]byte
	barrierFlag atomic.Uint64
	_           [lineSize - 8]byte
	writesTo    atomic.Uint64
	_           [lineSize - 8]byte
	shut        atomic.Uint64
	_           [lineSize - 8]byte
	heads       [depth]Head
}

// A Head is a step of a member.
//
//c:struct gompi_head
type Head struct {
	step       atomic.Uint64
	callDigest uint64
	call       EncodedCall
	payload    [InHead]byte
}

var _ [smallAt]byte = [unsafe.Sizeof(flags{})]byte{}

// An EncodedCall is an encoded call of a collective, which must be equal on all members. Its first
// word is not 0.
type EncodedCall struct{ A, B uint64 }

// Digest returns the digest of calls up to c, where prev is the digest of the calls before c.
// Different calls hardly ever have the same digest.
func (c EncodedCall) Digest(prev uint64) uint64 {
	return ((prev^c.A)*digestFactor ^ c.B) * digestFactor
}

// digestFactor is an odd number, 2^64 divided by the golden ratio.
//
//c:const GOMPI_
const digestFactor = 0x9e3779b97f4a7c15

// A Part is a member's memory: its block and its large buffer. uses is the block's counter for
// this Team.
type Part struct {
	flags *flags
	large unsafe.Pointer
	uses  uint64
}

// reused reports whether the block is another Team's by now: the member was never in this Team.
func (p *Part) reused() bool { return (p.flags.uses.Load()-p.uses)&usesMask > 1 }

// empty clears a block, except uses: members of its last Team may still check whether this member
// has left.
func (f *flags) empty() {
	f.waitingFor.Store(0)
	f.consumed.Store(0)
	f.resultReady.Store(0)
	f.barrierFlag.Store(0)
	f.writesTo.Store(0)
	f.shut.Store(0)
	clear(f.heads[:])
}
