// Package seg is the memory that the ranks of one host share with each other
// and with their agent: one memfd, made by the agent before it starts the
// ranks, which inherit it, or, where none did, by the first of them, which passes
// it to the others. There are no names, no stale files, and no limit but memory. Where a sandbox
// allows no memfd it is an unlinked file of /dev/shm. Where that cannot be large, or not be
// allocated, there is no area: only what stands before it.
//
// # Layout
//
// All numbers are in the byte order of the host; a segment never leaves it.
//
//	offset           size             content
//	0                4096             header: magic, version, sizes, the epoch word
//	header.lines     ranks x 128      one state line per local rank
//	header.calls     ranks x 4096     one flight recorder per local rank: a ring
//	                                  of 64 records of 64 bytes
//	header.end       AreaSize(ranks)  the area, in whole pages, in which the ranks talk to each
//	                                  other: transport/shm says what is where
//	behind it        256 GiB          the arenas, one per local rank
//	at the end       header.extra     what the agent has added by Extend, nothing in most jobs
//
// Local ranks are numbered from 0 in the order of their ranks in the job.
//
// The area, of n ranks:
//
//	offset           size             content
//	0                n x 256          one line per local rank: it alone says there that
//	                                  it sleeps, and how often it has recalled places
//	                                  in its heap; who writes to it for the first time
//	                                  sets a bit there
//	n x 256          n x n x stride   one ring per pair, in the order of the readers,
//	                                  then of the writers; a stride is 128 bytes of
//	                                  positions, and of who copies what of a shared
//	                                  copy (direct.go), and a power of two of records.
//	                                  The writer writes the records, the reader how far
//	                                  it has read: transport/shm/ring.go
//
// An arena, of A = ArenaSize(n) bytes, in whole pages. Only its rank takes memory in it:
//
//	offset           size             content
//	0                A/32             blocks, equally large, one per communicator that
//	                                  the rank is in: its rank alone writes to them:
//	                                  internal/core/shmsync/block.go
//	A/32             A/4 - A/32       large buffers, the i-th of the i-th block:
//	                                  as blocks
//	A/4              A - A/4          the rank's part of the symmetric heap, from which
//	                                  comm.Alloc takes whole pages: all ranks write, in
//	                                  collectives and messages, each where its call
//	                                  allows it
//
// # Descriptors
//
// The segment comes with one doorbell per local rank, an eventfd that wakes the
// rank when something is written to it. Every rank that an agent starts inherits the
// segment and all doorbells under the same numbers: GOMPI_SEG_FD is the
// segment, GOMPI_BELL_FD the doorbell of local rank 0, and the doorbells of the
// others follow it without gaps.
//
// # Claiming
//
// The pages before the area are allocated when the segment is made, and a memfd
// is sealed against shrinking. Those of the area and the arenas are holes until a
// rank claims them. So running out of memory is an error at one of these moments, and
// touching what exists never raises SIGBUS. Memory of the heap becomes a hole again
// when it is freed, and so do the arena and the rings of a rank that died, if the job goes
// on. Long parts of the heap are claimed on huge pages, if there are any.
package seg

import (
	"os"
	"sync/atomic"
	"unsafe"

	"gompi/internal/world"
)

const (
	magic        = 0x67_65_73_69_70_6d_6f_67 // "gompiseg"
	version      = 3
	headerSize   = 4096
	recorderSize = 4096

	// MaxRanks bounds the ranks of one host.
	MaxRanks = 1 << 16

	lineSize   = 256
	recordSize = 64

	// Recorded is the number of calls that a flight recorder remembers.
	//
	//c:const GOMPI_
	Recorded = recorderSize / recordSize
)

// pageSize is that of the kernel: 4 KiB on amd64, and 4, 16 or 64 KiB on arm64. The area, the
// arenas and all that is released begin at multiples of it.
var pageSize = os.Getpagesize()

// A header is the beginning.
type header struct {
	magic   uint64
	version uint32
	ranks   uint32
	size    uint64        // of the file
	lines   uint64        // offset of the state lines
	calls   uint64        // offset of the flight recorders
	end     uint64        // offset of what is not laid out yet
	job     uint64        // ranks in the job, 0 where no agent has made the segment
	extra   uint64        // bytes at the end of the file
	epoch   atomic.Uint64 // alone in its cache line: all ranks spin on it
	_       [headerSize - 72]byte
}

// A line is the state of one rank. The agent writes rank before it starts the
// rank; everything else is the rank's, but for state, which the agent sets last.
type line struct {
	state atomic.Uint32
	pid   atomic.Int32
	rank  world.Rank
	marks atomic.Uint32
	left  atomic.Int64 // when the rank began to leave, as Now; 0 if it has not
	site  note         // of the call that was last found to wait for long, by its ticket
	name  note         // of the communicator of that, by its id
	_     [8]byte
}

// A note is a text of something with a number.
type note struct {
	written atomic.Uint64 // odd while it is written
	of      atomic.Uint64
	text    [noteWords]atomic.Uint64
}

// noteWords is how many words of text a note has: two fill a line.
const noteWords = 12

// The marks of a rank.
const (
	cameLate    = 1 << iota // a process came in its place when the agent's had ended
	callsMPI                // its calls are those of an MPI program
	toldOfChild             // a child of a rank has told of itself, in the line of local rank 0
)

// A record is one call in a flight recorder; recorder.go says how it is written.
//
//c:struct gompi_record
type record struct {
	stamp uint64 // ticket and phase
	comm  uint64
	what  uint64 // kind, type, operator, and peer in the upper half
	count uint64
	bytes uint64
	start uint64
	seq   uint64
	_     [1]uint64
}

// The layout is the sizes of these types.
var (
	_ [headerSize]byte = [unsafe.Sizeof(header{})]byte{}
	_ [lineSize]byte   = [unsafe.Sizeof(line{})]byte{}
	_ [recordSize]byte = [unsafe.Sizeof(record{})]byte{}
)

// AreaSize returns the size of the area for n ranks: enough for whatever
// transport/shm needs, which grows with the pairs of ranks, of which it serves
// those of that many ranks. What is not claimed takes no memory.
func AreaSize(n int) int {
	n = min(n, 1024)
	return wholePages(128<<20 + n*n*(4<<10))
}

// arenaSpace is the address space of all arenas. Few processes have less.
const arenaSpace = 256 << 30

// ArenaSize returns the size of each arena on a host with n ranks.
func ArenaSize(n int) int { return arenaSpace / n / pageSize * pageSize }

// sizes returns the offsets of a segment for n ranks.
func sizes(n int) (lines, calls, end int) {
	lines = headerSize
	calls = lines + (n*lineSize+recorderSize-1)/recorderSize*recorderSize
	return lines, calls, wholePages(calls + n*recorderSize)
}

// wholePages returns n rounded up to whole pages.
func wholePages(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }
