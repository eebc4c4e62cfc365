// Package node does the collectives of ranks that share memory, by direct
// access: a rank stores what the others need where they see it, and they read it
// from there. No message is sent, and no lock is taken.
//
// # A room
//
// The memory of one communicator is its room: a block of BlockSize bytes for each
// member, which lies in that member's arena. Only its owner writes to a block.
//
//	offset   size    content
//	0        8       waits: 1 + the member for whose word the owner sleeps, or 0
//	128      8       read: the last step of which the owner has read all it wants
//	256      8       made: the last step of which the owner has reduced its share
//	384      8       uses: how often the block has been taken and given back
//	512      depth   slots, each of stride bytes
//
// A slot:
//
//	0        8       step: whose step this is; stored last
//	8        8       trail: a digest of all calls up to this one
//	16       16      the call, if the step is a collective's first, else 0
//	32       32      the payload, if it fits
//	64       chunk   else the payload
//
// So what is short is one line of the cache. Words of different purposes are 128
// bytes apart, as processors fetch lines in pairs.
//
// # Steps
//
// Each collective takes one step or several, equally many on all members, which
// count them from 1 for the life of the room. In a step a member fills its slot
// number (step modulo depth), and reads those of others. In a collective's first
// step every member fills its slot, if only with its call; that is compared with
// their own by all who read it.
//
// # Why nobody reads what is not there, or too late
//
// A payload is stored before the step that makes it valid, and read after it: the
// step is stored and loaded atomically, which orders everything before the one
// and after the other, in Go's memory model and so for the processor.
//
// A slot is filled anew depth steps later, when all members have read the old
// step. There are two ways to know. A member stores read when it has read a step.
// And a member whose call of a collective is seen has read everything of the one
// before: so a collective of one step in which all read all needs no stores of
// read at all. What a member has read never goes back, so the least of all is
// kept in free and looked up again only when it is too small.
//
// Can two members wait for each other? A slot of step s waits for reads of step
// s-depth, a read of step s for slots of step s. Every member fills less than
// depth steps ahead of its reading, and stores read also for steps in which it
// reads nothing. So of all who wait, the one with the least step does not.
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

	"gompi/internal/mem"
)

// The layout of a block.
const (
	lineSize = 128
	slotsAt  = 4 * lineSize
	headSize = 64
	depth    = 8
	pageSize = 4096
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
}

// head is the beginning of a slot.
type head struct {
	step  atomic.Uint64
	trail uint64
	call  Call
	small [headSize - 32]byte
}

var (
	_ [slotsAt]byte  = [unsafe.Sizeof(lines{})]byte{}
	_ [headSize]byte = [unsafe.Sizeof(head{})]byte{}
)

// A Call is what all members must call alike, in a form that means nothing here.
// Its first word is never 0.
type Call [2]uint64

// chunkSize returns the payload of a slot on a host with the given ranks: what
// stays in the second-level cache between one member's storing and another's
// loading, but less where there are many, whose memory adds up.
func chunkSize(ranks int) int {
	switch {
	case ranks <= 16:
		return 32 << 10
	case ranks <= 64:
		return 16 << 10
	}
	return 8 << 10
}

// MaxRanks is for how many ranks of a host there are rooms: an element of each
// fits in a slot, for all to read.
const MaxRanks = 512

func stride(chunk int) int { return (headSize + chunk + lineSize - 1) &^ (lineSize - 1) }

// BlockSize returns the bytes of a member's block on a host with the given ranks.
func BlockSize(ranks int) int {
	return (slotsAt + depth*stride(chunkSize(ranks)) + pageSize - 1) &^ (pageSize - 1)
}

// A Port is what a Room needs of the rank that it works for.
type Port interface {
	// Glance lets other things of the rank go on, without waiting, and returns
	// why the communicator is broken, nil while it works.
	Glance() error
	// Await returns when word, which that member stores, is at least want, or
	// why that will not be.
	Await(word *atomic.Uint64, want uint64, member int) error
	// Wake wakes a member, should it sleep.
	Wake(member int)
	// Disagree breaks the communicator: that member's call is not the one made
	// here.
	Disagree(member int, mine, theirs Call) error
	// DisagreeOn breaks the communicator: that member sends so many bytes where
	// this one expects so many.
	DisagreeOn(member, mine, theirs int) error
}

// A Room does the collectives of one communicator, one at a time. Its methods
// are not for concurrent use.
type Room struct {
	port    Port
	me      int
	chunk   int
	stride  int
	looks   int
	patient int  // looks of a caller that may spin
	ordered bool // reductions keep the order of coll/order.go

	blocks []unsafe.Pointer // of the members
	step   uint64           // the last one of the last collective
	trail  uint64
	call   Call
	free   uint64 // all members have read the steps up to this one
	srcs   []mem.Buffer
	starts [2][]int
	spares [][]byte // by height in the combination tree
}

// New returns the room of member me, given the blocks of all members on a host with
// the given ranks. ordered makes reductions combine in the order of coll/order.go.
// A caller that may spin looks that often at a word before it lets go of the
// processor.
func New(me int, blocks []unsafe.Pointer, ranks int, ordered bool, looks int, port Port) *Room {
	chunk := chunkSize(ranks)
	return &Room{
		port: port, me: me, chunk: chunk, stride: stride(chunk), ordered: ordered, patient: max(looks, 1),
		blocks: blocks, srcs: make([]mem.Buffer, len(blocks)),
	}
}

func (r *Room) size() int { return len(r.blocks) }

func (r *Room) lines(member int) *lines { return (*lines)(r.blocks[member]) }

// slot returns a member's slot of step s.
func (r *Room) slot(member int, s uint64) *head {
	return (*head)(unsafe.Add(r.blocks[member], slotsAt+int(s%depth)*r.stride))
}

// Begin begins a collective: every member calls the same. quiet is for callers
// that must not spin.
func (r *Room) Begin(c Call, quiet bool) {
	const odd = 0x9e3779b97f4a7c15
	r.call = c
	r.trail = ((r.trail^c[0])*odd ^ c[1]) * odd
	r.looks = r.patient
	if quiet {
		r.looks = 1
	}
}

// acquire returns the own slot of step s when nobody reads the step before in it.
func (r *Room) acquire(s uint64) (*head, error) {
	if s > r.free+depth {
		free := s
		for j := range r.blocks {
			if j == r.me {
				continue
			}
			read := &r.lines(j).read
			if err := r.await(read, s-depth, j); err != nil {
				return nil, err
			}
			free = min(free, read.Load())
		}
		r.free = free
	}
	return r.slot(r.me, s), nil
}

// sign puts the call into a slot of a collective's first step.
func (r *Room) sign(h *head) { h.trail, h.call = r.trail, r.call }

// store stores a word that others wait for, and wakes those who sleep for it.
func (r *Room) store(word *atomic.Uint64, v uint64) {
	word.Store(v)
	for j := range r.blocks {
		if r.lines(j).waits.Load() == uint64(r.me)+1 {
			r.port.Wake(j)
		}
	}
}

// glance is on every how manieth look at a word other things may go on: that
// costs as much as so many looks.
const glance = 128

// await returns when a word of another member is at least want.
func (r *Room) await(word *atomic.Uint64, want uint64, member int) error {
	for i := 1; i <= r.looks; i++ {
		if word.Load() >= want {
			return nil
		}
		if i%glance == 0 {
			if err := r.port.Glance(); err != nil {
				return err
			}
		}
	}
	waits := &r.lines(r.me).waits
	waits.Store(uint64(member) + 1)
	defer waits.Store(0)
	return r.port.Await(word, want, member)
}

// meet waits for a member's slot of a collective's first step, and compares its
// call.
func (r *Room) meet(member int, first uint64) (*head, error) {
	h := r.slot(member, first)
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
		mine, theirs := r.slot(r.me, s), r.slot(member, s)
		if mine.step.Load() == s && theirs.step.Load() == s && mine.call[0] != 0 && theirs.call[0] != 0 && mine.call != theirs.call {
			return r.port.Disagree(member, mine.call, theirs.call)
		}
	}
	return r.port.Disagree(member, r.call, r.slot(member, first).call)
}

// meetAll waits until all members have made the call.
func (r *Room) meetAll(first uint64) error {
	for j := range r.blocks {
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
func (r *Room) hasRead(s uint64) { r.store(&r.lines(r.me).read, s) }
