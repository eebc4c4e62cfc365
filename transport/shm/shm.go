// Package shm moves frames between the ranks of one host through memory that they share. Each
// ordered pair of ranks has a ring, in use from the first frame on. The caller provides the memory.
//
// # Layout of the area
//
//	offset        size            content
//	0             n x 256         one line per local rank: whether the rank sleeps, the
//	                              ranks that have ever written to it, and the number
//	                              of its recalls of places in its heap
//	ringsAt(n)    n x n x stride  rings, by reader, then by writer, each with cells behind it
//
// The rings of pairs that exchange no frames are never touched, and take no memory.
//
// # How long payloads travel
//
// Between private buffers, long payloads go through cells (cells.go) or the ring: its writer and
// reader copy at the same time. From and to the symmetric heap, the ranks copy payloads once,
// themselves: direct.go. The kernel can do so from private buffers (process_vm_readv): source.go.
// The processor decides which way is faster (half a round trip between two near AMD EPYC, by the
// kernel and through the ring: 64 KiB 6.3 and 3.0 us, 1 MiB 97 and 37, 16 MiB 4.8 and 1.8 ms; on an
// Intel Xeon the copy alone of 64 KiB 3.1 and 5.5, of 1 MiB 51 and 75). So the sender passes on the
// message's address, as a Source, and the receiver decides.
package shm

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

const (
	// MaxRanks is the largest number of ranks of one host that can use an area.
	MaxRanks = 1024

	// Sizes of one ring, and of all rings of a host together. The total exceeds allRings only if
	// each ring has the smallest size. A writer's Shape limits the part of the ring that it uses.
	largestRing  = 2 << 20
	smallestRing = 2 << 10
	allRings     = 128 << 20 // without cells

	// firstLap is the part of a ring that is claimed first.
	firstLap = 64 << 10

	// smallBody is the longest payload that does not make a ring grow.
	//
	//c:const GOMPI_RING_
	smallBody = 1 << 10
)

// A State states whether a rank of this host lives.
type State uint8

// The states.
const (
	Alive State = iota
	Left        // the rank has ended in good order
	Dead
)

// A Shape specifies how a rank writes to its rings. The best Shape depends on the processor. The
// ranks of a host may have different Shapes: readers accept all.
type Shape struct {
	// Chunk is the length of the longest record. The reader copies one record while the writer
	// writes the next, and both should stay in the second-level cache.
	Chunk int
	// Bytes is the part of a ring that the writer uses once longer messages have come. If the part
	// is larger than the second-level cache, its lines have left the reader's cache when the writer
	// comes round again: on some processors, taking a line out of another core's cache costs more
	// than reading the line from the third level (4 MiB between two cores with a common third
	// level: 488 us with 256 KiB, 170 with 2 MiB). On other processors, such a ring leaves the
	// caches for nothing.
	Bytes int
}

// defaultShape is the Shape for an unknown processor.
var defaultShape = Shape{Chunk: 32 << 10, Bytes: largestRing}

// The bounds of a Shape's longest record. The word of a record has 16 bits for the length. Small
// messages fit whole into the shorter bound.
const leastRecord, mostRecord = 4 << 10, 1 << (readAt - lengthAt)

// rounded returns the nearest Shape that rings can have.
func (s Shape) rounded() Shape {
	s.Chunk = min(max(s.Chunk, leastRecord), mostRecord) &^ (lineSize - 1)
	s.Bytes = 1 << (bits.Len(uint(min(max(s.Bytes, firstLap), largestRing))) - 1)
	return s
}

// Config names the ranks of the host and the memory they share.
type Config struct {
	Local world.LocalRank // this rank's position in Ranks
	Ranks []world.Rank    // the ranks of this host, ascending; the Transport owns the slice
	// Area is the shared memory, Size(len(Ranks)) bytes, zero when the job starts.
	Area []byte
	// Heap returns the memory of a local rank that all other ranks can read and write too, nil if
	// there is none.
	Heap func(local world.LocalRank) []byte
	// Claim makes sure that a part of Area exists, so that touching the part cannot fail. Claim may
	// be called again for the same part.
	Claim func(off, n int) error
	// Release frees the whole pages of a part of Area that no living rank uses. Pages that are
	// claimed again are zero. Release may be nil.
	Release func(off, n int) error
	// Ring rings the doorbell of a local rank, which wakes the rank's Parker.
	Ring func(local world.LocalRank)
	// PID returns the process of a local rank, for access to its memory. A nil PID forbids such
	// access.
	PID func(local world.LocalRank) int
	// State returns the State of a local rank, at the cost of a load.
	State func(local world.LocalRank) State
}

// A line is the data that a rank publishes for the ranks that write to it.
type line struct {
	parked atomic.Uint32 // 1 while the rank sleeps and wants to be woken
	_      [lineSize - 4]byte
	// Bit i is set if local rank i has written to this rank.
	writers [MaxRanks / 64]atomic.Uint64
	// The number of times that the rank has recalled its places; part of each place that it sends.
	recalls atomic.Uint64
	// Whether the rank cannot reach its peers' own memory; and the proof that a process is this
	// rank, with the proof's address: see crossmemory.go.
	reachesNothing atomic.Uint32
	_              uint32
	proofAt        atomic.Uintptr
	proof          proof
	_              [256 - lineSize - MaxRanks/8 - 40]byte // whole lines of the cache
}

// ringSize returns the bytes of records in a ring of a host with n ranks.
func ringSize(n int) int {
	size := largestRing
	for size > smallestRing && n*n*size > allRings {
		size /= 2
	}
	return size
}

func stride(n int) int { return cellsAt(n) + cellBytes(n) }

// cellsAt returns the place of the cells behind a ring of n ranks.
func cellsAt(n int) int { return controlSize + ringSize(n) }

func ringsAt(n int) int { return n * int(unsafe.Sizeof(line{})) }

// Size returns the size of the area for n ranks.
func Size(n int) int { return ringsAt(n) + n*n*stride(n) }

// A Transport implements transport.Transport.
type Transport struct {
	Config
	shape     Shape
	sink      transport.Sink
	eagerSink transport.EagerSink // sink, if sink is an EagerSink
	lines     []line
	excluded  []bool   // by local rank, nil if all are reached
	peers     []*peer  // by local rank, nil before first use
	used      []*peer  // the peers that are not nil
	readers   []*peer  // the peers that have written to this rank
	known     []uint64 // the bits of writers that findWriters has handled
	waiting   int      // queued frames for which no Sent is due
	moving    int      // copies from and to heaps that are under way
	cross     *CrossMemory
	armed     bool // Arm was called, and no Poll since
	idle      int  // Polls in a row that found nothing
	scarce    bool // a ring found no memory to grow into: no other ring tries
	closing   bool
	closed    bool
	head      transport.Header
}

// A peer is another rank of this host.
type peer struct {
	local   world.LocalRank
	rank    world.Rank
	lost    bool
	hungry  bool // w.hungry is set
	w       writer
	r       reader
	reads   bool // the peer is in readers
	behind  bool // the last look found a record: this rank is behind the writer
	out     outbox
	in      transport.Arrival
	cells   cells
	moves   moves
	invited uint64 // the number of the last invitation sent to the peer
}

// New returns the transport of a rank.
func New(cfg Config, sink transport.Sink) (*Transport, error) {
	n := len(cfg.Ranks)
	if !slices.IsSorted(cfg.Ranks) {
		return nil, fmt.Errorf("shared memory of ranks %v: want them ascending", cfg.Ranks)
	}
	if n > MaxRanks || len(cfg.Area) < Size(n) {
		return nil, fmt.Errorf("shared memory of %d bytes for %d ranks: want %d bytes and at most %d ranks",
			len(cfg.Area), n, Size(n), MaxRanks)
	}
	// Claim this rank's own line: peers touch the line only once they know that this rank has a
	// Transport.
	own := int(unsafe.Sizeof(line{}))
	if err := cfg.Claim(int(cfg.Local)*own, own); err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	t := &Transport{Config: cfg, shape: defaultShape, sink: sink, peers: make([]*peer, n),
		known: make([]uint64, (n+63)/64)}
	t.eagerSink, _ = sink.(transport.EagerSink)
	t.lines = unsafe.Slice((*line)(unsafe.Pointer(&cfg.Area[0])), n)
	t.cross = &CrossMemory{local: cfg.Local, lines: t.lines, pid: cfg.PID, peers: make([]atomic.Uint32, n)}
	return t, nil
}

// CrossMemory returns this rank's access to the memory of its peers.
func (t *Transport) CrossMemory() *CrossMemory { return t.cross }

// Name implements transport.Transport.
func (t *Transport) Name() string { return "shm" }

// Capabilities implements transport.Transport.
func (t *Transport) Capabilities() transport.Capabilities {
	return transport.Capabilities{Progresser: t, Detacher: t, Inline: t, Lender: t, Direct: t, Getter: t}
}

// Carries implements transport.Transport.
func (t *Transport) Carries(s mem.Space) bool { return s == mem.Host }

// Reaches implements transport.Transport. It claims the memory of the ring to rank. Without memory,
// another transport must reach that rank.
func (t *Transport) Reaches(rank world.Rank) bool {
	local := t.local(rank)
	if local < 0 || local == t.Local {
		return false
	}
	p := t.peer(local)
	if p.w.mem == nil && !p.lost {
		mem, err := t.ring(local, t.Local)
		if err != nil {
			return false
		}
		n := len(t.Ranks)
		p.w.ring = newRing(mem[:cellsAt(n)])
		p.w.setShape(t.shape)
		p.w.cells = &p.cells
		claim := func(off, n int) bool {
			t.scarce = t.scarce || t.Claim(t.ringAt(local, t.Local)+off, n) != nil
			return !t.scarce
		}
		p.w.claim = func() bool { return claim(0, controlSize+int(p.w.full)) }
		p.cells.claim = func() bool { return claim(cellsAt(n), cellBytes(n)) }
	}
	return true
}

// SetShape sets how this rank writes to its rings, before the first frame.
func (t *Transport) SetShape(s Shape) { t.shape = s.rounded() }

// Exclude excludes a rank that has no shm Transport: Reaches reports false for that rank. Exclude
// is called before the first frame.
func (t *Transport) Exclude(rank world.Rank) {
	if local := t.local(rank); local >= 0 {
		if t.excluded == nil {
			t.excluded = make([]bool, len(t.Ranks))
		}
		t.excluded[local] = true
	}
}

// local returns the local rank of a rank, -1 if the rank is excluded or on another host.
func (t *Transport) local(rank world.Rank) world.LocalRank {
	i, ok := int(rank-t.Ranks[0]), true
	if i < 0 || i >= len(t.Ranks) || t.Ranks[i] != rank { // mostly ranks of one host are consecutive
		i, ok = slices.BinarySearch(t.Ranks, rank)
	}
	if !ok || t.excluded != nil && t.excluded[i] {
		return -1
	}
	return world.LocalRank(i)
}

// talker returns the peer of a rank, nil if no frame has been exchanged with that rank so far.
func (t *Transport) talker(rank world.Rank) *peer {
	if local := t.local(rank); local >= 0 {
		return t.peers[local]
	}
	return nil
}

func (t *Transport) peer(local world.LocalRank) *peer {
	p := t.peers[local]
	if p == nil {
		p = &peer{local: local, rank: t.Ranks[local]}
		n := len(t.Ranks)
		p.cells.most = uint32(cellBytes(n) / cellSize)
		for i, at := range [...]int{t.ringAt(local, t.Local), t.ringAt(t.Local, local)} {
			p.cells.mem[i] = unsafe.SliceData(t.Area[at+cellsAt(n):])
		}
		t.peers[local] = p
		t.used = append(t.used, p)
	}
	return p
}

// ring claims the first lap of the ring from one rank to another, and returns the ring's memory.
func (t *Transport) ring(to, from world.LocalRank) ([]byte, error) {
	n := len(t.Ranks)
	if err := t.claimRing(to, from, min(controlSize+firstLap, stride(n))); err != nil {
		return nil, err
	}
	return t.Area[t.ringAt(to, from):][:stride(n)], nil
}

func (t *Transport) ringAt(to, from world.LocalRank) int {
	n := len(t.Ranks)
	return ringsAt(n) + (int(to)*n+int(from))*stride(n)
}

// claimRing makes sure that the first bytes of a ring exist.
func (t *Transport) claimRing(to, from world.LocalRank, bytes int) error {
	return t.Claim(t.ringAt(to, from), bytes)
}

// findWriters starts reading from ranks that have written to this rank for the first time since the
// last call. A rank sets its bit before its first record.
func (t *Transport) findWriters() {
	for i := range t.known {
		now := t.lines[t.Local].writers[i].Load()
		for now != t.known[i] {
			bit := now & ^t.known[i] & -(now & ^t.known[i])
			t.known[i] |= bit
			local := world.LocalRank(i*64 + trailing(bit))
			if int(local) >= len(t.Ranks) || local == t.Local {
				continue
			}
			t.listen(local)
		}
	}
}

// listen starts reading from a rank, whose ring exists: the writer has claimed the ring.
func (t *Transport) listen(local world.LocalRank) {
	p := t.peer(local)
	if p.lost {
		return
	}
	mem, err := t.ring(t.Local, local)
	if err != nil { // impossible: the ring exists
		t.lose(p, fmt.Errorf("%w: %w", transport.ErrCut, err))
		return
	}
	p.r, p.reads = newReader(mem[:cellsAt(len(t.Ranks))]), true
	t.readers = append(t.readers, p)
}

// lose ends all exchange with p and reports the loss to the sink, once.
func (t *Transport) lose(p *peer, err error) {
	if p.lost {
		return
	}
	p.lost, p.hungry = true, false
	p.in = transport.Arrival{}
	t.endMoves(p, err)
	for !p.out.Empty() {
		if f := t.next(p); f.lent {
			t.sink.Sent(f.token, err)
		}
	}
	t.sink.Lost(p.rank, err)
}
