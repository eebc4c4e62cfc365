// Package seg is the memory that the ranks of one host share with each other and with their agent:
// one memfd. An agent makes it before starting the ranks, which inherit it; without an agent, the
// first rank makes it and passes it on. There are no names, no stale files, and no limit but
// memory. If a sandbox allows no memfd, an unlinked file in /dev/shm replaces it. If that cannot be
// large, or not be allocated, the segment ends where its area would begin.
//
// # Layout
//
// All numbers are in the byte order of the host; a segment never leaves the host.
//
//	offset           size             content
//	0                4096             header: magic, version, sizes, the epoch word
//	header.lines     ranks x 256      one state line per local rank
//	header.calls     ranks x 4096     one flight recorder per local rank: a ring
//	                                  of 64 records of 64 bytes
//	header.end       AreaSize(ranks)  the area, in whole pages, through which the ranks
//	                                  exchange frames: transport/shm has its layout
//	behind it        256 GiB          the arenas, one per local rank
//	at the end       header.extra     the agent's addition by Extend, nothing in most jobs
//
// Local ranks are numbered from 0 in the order of their ranks in the job.
//
// The area, of n ranks:
//
//	offset           size             content
//	0                n x 256          one line per local rank: the rank stores there whether it
//	                                  sleeps, and the number of its recalls of places in its heap;
//	                                  a rank that writes to it for the first time sets a bit there
//	n x 256          n x n x stride   one ring per pair, in the order of the readers, then of the
//	                                  writers; a stride is 128 bytes of positions, and of the
//	                                  shares of a common copy (direct.go), and a power of two of
//	                                  records. The writer writes the records, the reader its
//	                                  position: transport/shm/ring.go; cells lie behind it (cells.go)
//
// An arena, of A = ArenaSize(n) bytes, in whole pages. Only its rank takes memory in the arena:
//
//	offset           size             content
//	0                A/32             blocks of equal size, one per communicator of the rank,
//	                                  which alone writes to them, but for bounce buffers that two
//	                                  members exchange: internal/core/shmsync/block.go
//	A/32             A/4 - A/32       large buffers, the i-th for the i-th block, written alike
//	A/4              A - A/4          the rank's part of the symmetric heap (heap.go), from which
//	                                  comm.Alloc takes whole pages: all ranks write, in
//	                                  collectives and messages, where their calls allow
//
// # Descriptors
//
// The segment has one doorbell per local rank, an eventfd that wakes the rank on a write. Every
// rank that an agent starts inherits the segment and all doorbells under the same numbers:
// GOMPI_SEG_FD is the segment, GOMPI_BELL_FD the doorbell of local rank 0, and the doorbells of the
// others follow without gaps.
//
// # Claiming
//
// The pages before the area are allocated when the segment is made, and a memfd is sealed against
// shrinking. The pages of the area and the arenas are holes until a rank claims them. So running
// out of memory is an error of New or of a claim, and touching existing memory never raises SIGBUS.
// Memory of the heap becomes a hole again when it is freed. So do the arena and the rings of a dead
// rank, if the job continues. Long parts of the heap are claimed on huge pages, if there are any.
package seg

import (
	"os"
	"sync/atomic"
	"unsafe"

	"gompi/internal/world"
)

const (
	magic        = 0x67_65_73_69_70_6d_6f_67 // "gompiseg"
	version      = 4
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

// pageSize is the size of the kernel's pages: 4 KiB on amd64, and 4, 16 or 64 KiB on arm64. The
// area, the arenas and all released memory begin at multiples of pageSize.
var pageSize = os.Getpagesize()

// A header is the beginning of a segment.
type header struct {
	magic   uint64
	version uint32
	ranks   uint32
	size    uint64        // of the file
	lines   uint64        // offset of the state lines
	calls   uint64        // offset of the flight recorders
	end     uint64        // offset of the area
	job     uint64        // ranks in the job, 0 if no agent has made the segment
	extra   uint64        // bytes at the end of the file
	epoch   atomic.Uint64 // alone in its cache line: all ranks spin on it
	_       [headerSize - 72]byte
}

// A line is the state of one rank. The agent writes rank before starting the rank; the rank writes
// everything else, except the last state, which the agent sets.
type line struct {
	state atomic.Uint32
	pid   atomic.Int32
	rank  world.Rank
	marks atomic.Uint32
	left  atomic.Int64 // when the rank began to leave, as Now; 0 if it has not
	site  note         // of the call that was last found in a long wait, by its ticket
	name  note         // of the communicator of that call, by its id
	_     [8]byte
}

// A note is a text about a call or a communicator, which has a number.
type note struct {
	written atomic.Uint64 // odd during a write
	of      atomic.Uint64
	text    [noteWords]atomic.Uint64
}

// noteWords is the number of words of text in a note: two notes fill a line.
const noteWords = 12

// The marks of a rank.
const (
	cameLate    = 1 << iota // a process came in the rank's place after the agent's process had ended
	callsMPI                // the program calls functions of MPI
	toldOfChild             // a child of a rank has reported itself, in the line of local rank 0
)

// A record is one call in a flight recorder; recorder.go describes the writing.
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

// The layout consists of the sizes of these types.
var (
	_ [headerSize]byte = [unsafe.Sizeof(header{})]byte{}
	_ [lineSize]byte   = [unsafe.Sizeof(line{})]byte{}
	_ [recordSize]byte = [unsafe.Sizeof(record{})]byte{}
)

// AreaSize returns the size of the area for n ranks: enough for transport/shm, which needs memory
// for each pair of ranks, up to its maximum number of ranks. Unclaimed parts take no memory.
func AreaSize(n int) int {
	n = min(n, 1024)
	return wholePages(160<<20 + n*n*(4<<10))
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
