// Package shmsync is how the ranks of a communicator that share a host synchronise, and where they
// store what the others read: steps and flags in the host's segment. No message is sent, and no
// lock is taken. The collectives on it are in package shmcoll, those of GPU memory in devcoll.
//
// A Team (team.go) is the members of a communicator, as one of them sees them. Waiting, and the
// comparison of calls, is in wait.go; steps in which all tell all in exchange.go; the bounce
// buffers in ring.go; a Pool (pool.go) is where a rank takes its blocks from.
//
// # Memory
//
// Each member has a block in its arena, and behind all blocks a large buffer. Only its owner writes
// to them.
//
//	offset   size       content of a block
//	0        8          waits: 1 + the member whose word the owner sleeps for, or 0
//	128      8          consumed: the last step of which the owner has read all that it wants
//	256      8          resultReady: the last step of which the owner has reduced its share
//	384      8          uses: how often the block has been taken and given back
//	512      8          barrierFlag: the last step that member 0 has seen all members fill
//	640      64 x 128   heads, one for each step under way
//	8832     4 KiB      the small bounce buffer
//	12928    64 KiB     the L2 bounce buffer
//
//	offset   size       content of a head
//	0        8          step: whose step this is; stored last
//	8        8          callDigest: of all calls up to this one
//	16       16         the call, if the step is a collective's first, else 0
//	32       96         the payload, if it fits
//
// A short payload thus takes one cache line, or two, which processors fetch together; words of
// different purposes are 128 bytes apart for the same reason. A longer one goes around a bounce
// buffer. Of these the small one stays in the first-level caches of writer and reader (np=2 near,
// 1 KiB around 64 KiB and around 4: allreduce 416 and 280 ns, reduce 460 and 320, bcast 366 and
// 255), the L2 buffer in the second-level cache, and the L3 buffer, which is the large buffer,
// on purpose not (path.LargeBuffer says why). It is claimed when the first collective wants it;
// where one member gets no memory for it, the L2 buffer serves all.
//
// # Steps
//
// Each collective takes one step or several, equally many on all members. All count them from 1,
// and know how long the payload of each is at most; so all know where it lies. In a step a member
// fills its head number (step modulo 64) and its payload, and reads those of others. In a
// collective's first step every member fills its head, if only with its call, which all who read it
// compare with their own.
//
// # Why no member reads too early or too late
//
// A payload is stored before the step that makes it valid, and read after it: the step is stored
// and loaded atomically, which orders everything before the one and after the other, in Go's memory
// model and so for the processor.
//
// A head is filled anew 64 steps later, a piece of a bounce buffer when it has gone around: when
// all members have read the old step. There are two ways to know. A member stores consumed when it
// has read a step. And a member whose call of a collective is seen has read everything of the one
// before: so a collective of one step in which all read all stores consumed not at all. What a
// member has read never goes back, so the least of all is kept in free, and looked up again only
// when it is too small.
//
// Can two members wait for each other? Filling a step waits for reads of older steps, reading one
// for its being filled. No member fills so far ahead of its reading that it overwrites what it has
// not read itself, and each stores consumed also for steps in which it reads nothing. So of all who
// wait, the one with the least step does not.
//
// # Sleeping
//
// A member that has looked at a word often enough stores in its waits for whom it waits, says that
// it sleeps, looks once more, and sleeps. Who stores a word then looks at all waits, and wakes those
// that mean it. Both are sequentially consistent: if the last look did not see the word, then the
// store of waits came before that of the word, and its writer sees it.
//
// # The end
//
// A member that finds its communicator broken returns at once, in the middle of whatever it does.
// Others may still read its block, and write theirs: so a block is used again only when every other
// member has given up its own or is dead.
package shmsync

import (
	"sync/atomic"
	"unsafe"
)

// The layout of a block.
const (
	lineSize = 128
	depth    = 64
	headsAt  = 5 * lineSize
	smallAt  = headsAt + depth*lineSize
	l2At     = smallAt + smallSize
	l2Size   = 64 << 10
	pageSize = 4096

	// The small buffer holds the payloads, of up to smallMost bytes, of three steps at least: so
	// where all read all, none waits for its place, as all have read the last but one when a
	// step begins.
	smallMost = 1 << 10
	smallSize = 4 * smallMost

	// BlockSize is the bytes of a block.
	BlockSize = (l2At + l2Size + pageSize - 1) &^ (pageSize - 1)

	// InHead is the bytes of a payload that fits into a head.
	InHead = lineSize - 32

	// Depth is how many heads there are: a step's head is filled again so many steps later.
	Depth = depth
)

// flags is the beginning of a block.
type flags struct {
	waits       atomic.Uint64
	_           [lineSize - 8]byte
	consumed    atomic.Uint64
	_           [lineSize - 8]byte
	resultReady atomic.Uint64
	_           [lineSize - 8]byte
	uses        atomic.Uint64
	_           [lineSize - 8]byte
	barrierFlag atomic.Uint64
	_           [lineSize - 8]byte
	heads       [depth]Head
}

// A Head is one step of one member.
type Head struct {
	step       atomic.Uint64
	callDigest uint64
	call       Call
	payload    [InHead]byte
}

var _ [smallAt]byte = [unsafe.Sizeof(flags{})]byte{}

// A Call is what all members must call alike, in a form that means nothing here. Its first word is
// never 0.
type Call struct{ A, B uint64 }

// A Part is one member's memory: its block and its large buffer.
type Part struct {
	flags *flags
	large unsafe.Pointer
}

// empty makes a block what it was at first, but for uses: members of the Team before may still look
// whether this one has left.
func (f *flags) empty() {
	f.waits.Store(0)
	f.consumed.Store(0)
	f.resultReady.Store(0)
	f.barrierFlag.Store(0)
	clear(f.heads[:])
}
