// Package node does the collectives of ranks that share memory, by direct
// access: a rank stores what the others need where they see it, and they read it
// from there. No message is sent, and no lock is taken.
//
// # A room
//
// The memory of one communicator is its room: for each member a block, and a stage
// behind all blocks, in that member's arena. Only its owner writes to them.
//
//	offset   size       content of a block
//	0        8          waits: 1 + the member for whose word the owner sleeps, or 0
//	128      8          read: the last step of which the owner has read all it wants
//	256      8          made: the last step of which the owner has reduced its share, or made its piece
//	384      8          uses: how often the block has been taken and given back
//	512      8          gate: the last step for which member 0 has seen all
//	640      64 x 128   heads, one for each step under way
//	8832     briefSize  the brief ring, for payload
//	12928    nearSize   the near ring, for payload
//
//	offset   size       content of a head
//	0        8          step: whose step this is; stored last
//	8        8          trail: a digest of all calls up to this one
//	16       16         the call, if the step is a collective's first, else 0
//	32       96         the payload, if it fits
//
// So what is short is one line of the cache, or two, which processors fetch
// together; words of different purposes are 128 bytes apart for the same reason.
// What is a bit longer goes around the brief ring, which the first-level caches of a
// writer and a reader hold beside all else (np=2 near, 1 KiB around 64 KiB and around 4:
// allreduce 416 and 280 ns, reduce 460 and 320, bcast 366 and 255). The payload of longer
// collectives goes around the near ring, which stays in the second-level cache. That of
// the longest goes around the stage, the far ring, which does not fit into that on purpose
// (path.LargeBuffer says why). A stage is claimed when the first collective wants it, in a step
// of its own; where one member gets none, the near ring serves all.
//
// # Steps
//
// Each collective takes one step or several, equally many on all members, which
// count them from 1 for the life of the room, and know of each how long its payload
// is at most; so all members know where in the rings it lies. In a step a member
// fills its head number (step modulo 64) and its piece of the ring, and reads those
// of others. In a collective's first step every member fills its head, if only with
// its call; that is compared with their own by all who read it.
//
// # Why nobody reads what is not there, or too late
//
// A payload is stored before the step that makes it valid, and read after it: the
// step is stored and loaded atomically, which orders everything before the one
// and after the other, in Go's memory model and so for the processor.
//
// A head is filled anew 64 steps later, a piece of a ring when it has gone around:
// when all members have read the old step. There are two ways to know. A member
// stores read when it has read a step. And a member whose call of a collective is
// seen has read everything of the one before: so a collective of one step in which
// all read all needs no stores of read at all. What a member has read never goes
// back, so the least of all is kept in free and looked up again only when it is too
// small.
//
// Can two members wait for each other? Filling a step waits for reads of older
// steps, reading one for its being filled. No member fills so far ahead of its
// reading that it overwrites what it has not read itself, and each stores read also
// for steps in which it reads nothing. So of all who wait, the one with the least
// step does not.
//
// # Sleeping
//
// A member that has looked at a word often enough stores in waits for whom it
// waits, says that it sleeps, looks once more, and sleeps. Who stores a word then
// looks at waits, and rings if it is meant. Both are sequentially consistent: if
// the last look did not see the word, then the store of waits came before that of
// the word, and its writer sees it.
//
// # The end
//
// A member that finds its communicator broken returns at once, in the middle of
// whatever it does. Others may still read its block, and write theirs: so a block
// is used again only when every other member has left the room or is dead.
package node

import (
	"sync/atomic"
	"unsafe"

	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// The layout of a block.
const (
	lineSize = 128
	depth    = 64
	headsAt  = 5 * lineSize
	briefAt  = headsAt + depth*lineSize
	nearAt   = briefAt + briefSize
	nearSize = 64 << 10
	pageSize = 4096

	// The brief ring holds the payloads, of up to briefMost bytes, of three steps at
	// least: so where all read all, none waits for its place, as all have read the last
	// but one when a step begins.
	briefMost = 1 << 10
	briefSize = 4 * briefMost

	// BlockSize is the size of a block.
	BlockSize = (nearAt + nearSize + pageSize - 1) &^ (pageSize - 1)
)

// lines is the beginning of a block.
type lines struct {
	waits atomic.Uint64
	_     [lineSize - 8]byte
	read  atomic.Uint64
	_     [lineSize - 8]byte
	made  atomic.Uint64
	_     [lineSize - 8]byte
	uses  atomic.Uint64
	_     [lineSize - 8]byte
	gate  atomic.Uint64
	_     [lineSize - 8]byte
	heads [depth]head
}

type head struct {
	step  atomic.Uint64
	trail uint64
	call  Call
	small [smallSize]byte
}

const smallSize = lineSize - 32

var _ [briefAt]byte = [unsafe.Sizeof(lines{})]byte{}

// A Call is what all members must call alike, in a form that means nothing here.
// Its first word is never 0.
type Call struct{ A, B uint64 }

// A Port is what a Room needs of the rank that it works for.
type Port interface {
	// Begun tells, once in a collective, that the others can see that this member has
	// begun it.
	Begun()
	// Glance lets other things of the rank go on, without waiting, while it waits
	// for a member, and returns why the communicator is broken, nil while it works.
	Glance(member int) error
	// Await returns when word, which that member stores, is at least want, or
	// why that will not be.
	Await(word *atomic.Uint64, want uint64, member int) error
	// Looks returns how often a caller that may spin looks at a word before it lets go
	// of the processor.
	Looks() int
	// Wake wakes a member, should it sleep.
	Wake(member int)
	// Disagree breaks the communicator: that member's call is not the one made here,
	// so many collectives ago.
	Disagree(member, ago int, mine, theirs Call) error
	// DisagreeOn breaks the communicator: that member sends so many bytes where
	// this one expects so many.
	DisagreeOn(member, mine, theirs int) error
}

// A Part is one member's memory.
type Part struct {
	lines *lines
	stage unsafe.Pointer
}

// A Room does the collectives of one communicator, one at a time. Its methods
// are not for concurrent use.
type Room struct {
	port    Port
	me      int
	looks   int
	patient int // looks of a caller that may spin
	paths   *path.Selector
	gated   bool // paths.Gated
	parts   []Part
	claim   func() error // the own stage

	step  uint64 // the last one of the last collective
	first uint64 // the first one of it
	trail uint64
	call  Call
	told  bool   // the rank knows that it has begun
	free  uint64 // all members have read the steps up to this one
	brief ring
	near  ring
	far   ring         // of no size before it is claimed
	asked bool         // whether there is memory for stages
	reach mem.Distance // to those who read what this member stores
	at    [depth]place

	srcs   []mem.Buffer
	dsts   []mem.Buffer
	blocks [2]blocks
	starts [2][]int // of blocks one after the other
	spares [][]byte // by height in the combination tree
	share  share    // of the allreduce under way
	access access   // to vectors in the members' heaps
	open   opening

	devices Devices
}

// New returns the room of member me of those with the given parts. claim makes sure that its
// stage exists, of as many bytes as paths has for a large buffer.
func New(me int, parts []Part, claim func() error, paths *path.Selector, port Port) *Room {
	return &Room{
		port: port, me: me, parts: parts, paths: paths, gated: paths.Gated(), patient: port.Looks(), claim: claim,
		brief: ring{at: briefAt, size: briefSize}, near: ring{at: nearAt, size: nearSize}, far: ring{size: uint64(paths.LargeBuffer)},
		srcs: make([]mem.Buffer, len(parts)), dsts: make([]mem.Buffer, len(parts)),
	}
}

func (r *Room) size() int { return len(r.parts) }

func (r *Room) head(member int, s uint64) *head { return &r.parts[member].lines.heads[s%depth] }

// Begin begins a collective: every member calls the same. quiet is for callers
// that must not spin.
func (r *Room) Begin(c Call, quiet bool) {
	const odd = 0x9e3779b97f4a7c15
	r.call, r.told, r.first = c, false, r.step+1
	r.trail = ((r.trail^c.A)*odd ^ c.B) * odd
	r.looks = r.patient
	if quiet {
		r.looks = 1
	}
}

// lay finds the place of step s with n bytes of payload at most, in the far ring if
// far. All members do so for every step, in order.
func (r *Room) lay(s uint64, n int, far bool) {
	if r.laySmall(s); n <= smallSize {
		return
	}
	p := &r.at[s%depth]
	p.small = false
	switch {
	case n <= briefMost:
		r.brief.lay(p, s, n)
	case far:
		p.far = true
		r.far.lay(p, s, n)
	default:
		r.near.lay(p, s, n)
	}
}

// laySmall is lay for a payload that fits into a head.
func (r *Room) laySmall(s uint64) { r.at[s%depth] = place{small: true, after: s - min(s, depth)} }

// acquire returns the own head of step s when nobody reads what its place held.
func (r *Room) acquire(s uint64) (*head, error) {
	if r.at[s%depth].after > r.free {
		return r.acquireLate(s)
	}
	return r.head(r.me, s), nil
}

// acquireLate is acquire where members may still have to read.
func (r *Room) acquireLate(s uint64) (*head, error) {
	free, after := s, r.at[s%depth].after
	for j := range r.parts {
		if j == r.me {
			continue
		}
		read := &r.parts[j].lines.read
		if err := r.await(read, after, j); err != nil {
			return nil, err
		}
		free = min(free, read.Load())
	}
	r.free = free
	return r.head(r.me, s), nil
}

// payload returns n bytes from off on of a member's payload of step s.
func (r *Room) payload(member int, s uint64, off, n int) []byte {
	p, m := &r.at[s%depth], &r.parts[member]
	at := unsafe.Pointer(&m.lines.heads[s%depth].small)
	switch {
	case p.small:
	case p.far:
		at = unsafe.Add(m.stage, p.off)
	default:
		at = unsafe.Add(unsafe.Pointer(m.lines), p.off)
	}
	return unsafe.Slice((*byte)(unsafe.Add(at, off)), n)
}

// sign puts the call into a head of a collective's first step.
func (r *Room) sign(h *head) { h.trail, h.call = r.trail, r.call }

// store stores a word that others wait for, and wakes those who sleep for it.
func (r *Room) store(word *atomic.Uint64, v uint64) {
	word.Store(v)
	for j := range r.parts {
		if r.parts[j].lines.waits.Load() == uint64(r.me)+1 {
			r.port.Wake(j)
		}
	}
}

// publish makes a step that is filled visible to the others. Until they see it the own
// next head is taken back from those who read it 64 steps ago, lest its stores wait for
// that (np=2 near, 8 B, back to back: barrier 90 ns, so 74; allreduce 152 and 131). The
// next place in the ring as well: nothing gained (1 KiB: bcast 204 and 243).
func (r *Room) publish(h *head, s uint64) {
	r.store(&h.step, s)
	r.begun()
	prefetchToWrite(unsafe.Pointer(r.head(r.me, s+1)), lineSize)
}

// begun tells the rank, once, that the collective has begun. It is done when the first
// step is published, since the others need time to see that.
func (r *Room) begun() {
	if !r.told {
		r.told = true
		r.port.Begun()
	}
}

// glance is on every how manieth look at a word other things may go on: that
// costs as much as so many looks.
const glance = 1024

// await returns when a word of another member is at least want.
func (r *Room) await(word *atomic.Uint64, want uint64, member int) error {
	for i := 1; i <= r.looks; i++ {
		if word.Load() >= want {
			return nil
		}
		if i%glance == 0 {
			if err := r.port.Glance(member); err != nil {
				return err
			}
		}
	}
	r.begun()
	r.patient = r.port.Looks() // what it is good for may have changed
	waits := &r.parts[r.me].lines.waits
	waits.Store(uint64(member) + 1)
	defer waits.Store(0)
	return r.port.Await(word, want, member)
}

// meet waits for a member's head of a collective's first step, and compares its
// call.
func (r *Room) meet(member int, first uint64) (*head, error) {
	h := r.head(member, first)
	if err := r.await(&h.step, first, member); err != nil {
		return nil, err
	}
	if h.step.Load() != first || h.trail != r.trail {
		return nil, r.differ(member, first)
	}
	return h, nil
}

// differ finds the first call in which a member differs, among those that are
// still to be seen: a rank may have come through the one in which it did, if it
// had to wait for nobody.
func (r *Room) differ(member int, first uint64) error {
	for s := first - min(first-1, depth-1); s < first; s++ {
		mine, theirs := r.head(r.me, s), r.head(member, s)
		if mine.step.Load() == s && theirs.step.Load() == s && mine.call.A != 0 && theirs.call.A != 0 && mine.call != theirs.call {
			return r.port.Disagree(member, r.since(s, first), mine.call, theirs.call)
		}
	}
	return r.port.Disagree(member, 0, r.call, r.head(member, first).call)
}

// since returns how many collectives this member has begun after the one that step s is
// of, up to the one whose first step is first. One may sign several heads, alike.
func (r *Room) since(s, first uint64) (n int) {
	trail := r.head(r.me, s).trail
	for s++; s < first; s++ {
		if h := r.head(r.me, s); h.step.Load() == s && h.call.A != 0 && h.trail != trail {
			trail = h.trail
			n++
		}
	}
	if trail != r.trail {
		n++
	}
	return n
}

// Compare compares the last call with those of members that it may have ended without
// meeting: a collective of several steps does not, but the root of a short Bcast looks at
// nobody. A member that has not called anything yet is waited for, as the Port does.
func (r *Room) Compare() error {
	if r.step != r.first || r.step == 0 {
		return nil
	}
	for j := range r.parts {
		if j == r.me {
			continue
		}
		h := r.head(j, r.first)
		if err := r.await(&h.step, r.first, j); err != nil {
			return err
		}
		if h.step.Load() == r.first && h.trail != r.trail {
			return r.differ(j, r.first)
		}
	}
	return nil
}

// assemble waits until all members have filled step s, where members in a crowd would look in
// vain at most others before each has had its turn: there it costs less to wait for one who
// waits for all.
func (r *Room) assemble(s uint64) error {
	if !r.gated {
		return nil
	}
	gate := &r.parts[0].lines.gate
	if r.me != 0 {
		return r.await(gate, s, 0)
	}
	for j := 1; j < r.size(); j++ {
		if err := r.await(&r.head(j, s).step, s, j); err != nil {
			return err
		}
	}
	r.store(gate, s)
	return nil
}

// meetAll waits until all members have made the call.
func (r *Room) meetAll(first uint64) error {
	if err := r.assemble(first); err != nil {
		return err
	}
	for j := range r.parts {
		if j == r.me {
			continue
		}
		if _, err := r.meet(j, first); err != nil {
			return err
		}
	}
	return nil
}

// hasRead tells that this member wants nothing of the steps up to s any more.
func (r *Room) hasRead(s uint64) { r.store(&r.parts[r.me].lines.read, s) }
