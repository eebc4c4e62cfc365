package shmsync

import (
	"fmt"
	"sync"
	"unsafe"

	"gompi/internal/world"
)

// A Pool holds the blocks of a rank's Teams, at the beginning of its arena. Blocks are equally
// large and are reused, so a rank's memory is bounded by the number of its Teams at a time.
// Methods may be called from any goroutine.
type Pool struct {
	mu     sync.Mutex
	arena  []byte
	large  int // bytes of a large buffer
	claim  func(off, n int) error
	lost   func(rank world.Rank) bool
	blocks []*block // by place
}

// A block is a block of this rank.
type block struct {
	uses    uint64   // odd while taken
	readers []reader // ranks that map the block, or did in the last Team
	later   []func() // called when no rank does any more, with no lock held
}

// A reader is another member of a Team. Its block shows whether the reader has left.
type reader struct {
	rank  world.Rank
	flags *flags
	uses  uint64 // of its block, for this Team
}

// A Token names a block to the other members: its number, and its uses. The zero Token names none.
type Token uint64

//c:const GOMPI_BLOCK_
const (
	usesBits = 24
	usesMask = 1<<usesBits - 1
)

func (t Token) place() int   { return int(t>>usesBits) - 1 }
func (t Token) uses() uint64 { return uint64(t) & usesMask }

// NewPool returns the Pool of a rank, with large buffers of this many bytes. claim allocates a part
// of the arena; lost reports whether a rank has ended.
func NewPool(arena []byte, large int, claim func(off, n int) error, lost func(rank world.Rank) bool) *Pool {
	return &Pool{arena: arena, large: large, claim: claim, lost: lost}
}

// Blocks lie in the first part of an arena, large buffers in the rest.
func (p *Pool) largeAt() int { return len(p.arena) / 8 }

func (p *Pool) places() int {
	return min(p.largeAt()/BlockSize, (len(p.arena)-p.largeAt())/p.large)
}

// Take allocates a block for a new Team, and fails without memory.
func (p *Pool) Take() (Token, error) {
	t, vacated, err := p.take()
	run(vacated)
	return t, err
}

func (p *Pool) take() (t Token, vacated []func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := 0
	for place < len(p.blocks) && !p.blocks[place].vacant(p.lost) {
		place++
	}
	if place == len(p.blocks) {
		if place == p.places() {
			return 0, nil, fmt.Errorf("all %d blocks that a rank can have are in use", place)
		}
		if err := p.claim(place*BlockSize, BlockSize); err != nil {
			return 0, nil, err
		}
		p.blocks = append(p.blocks, new(block))
	}
	b := p.blocks[place]
	vacated = b.clear()
	b.uses, b.readers = b.uses+1, nil
	t = Token(place+1)<<usesBits | Token(b.uses&usesMask)
	f := p.flagsAt(p.arena, t)
	f.empty()
	f.uses.Store(t.uses())
	return t, vacated, nil
}

// Give frees a block of which no Team was made, or the block of a Team that this rank has left.
func (p *Pool) Give(t Token) {
	if t == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.blocks[t.place()]
	b.uses++
	p.flagsAt(p.arena, t).uses.Store(b.uses & usesMask)
}

// WhenVacant makes Take or Sweep call f when all other members have left the Team of t, and t has
// been given back. f may block.
func (p *Pool) WhenVacant(t Token, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.blocks[t.place()]
	b.later = append(b.later, f)
}

// Withhold frees t, a block of which this rank has made no Team. Other ranks may have made the
// Team, after messages in the communicator of with, another Team. So t is freed when all other
// members have left the Team of with.
func (p *Pool) Withhold(t, with Token) {
	if with == 0 {
		p.Give(t)
		return
	}
	p.WhenVacant(with, func() { p.Give(t) })
}

// Sweep calls the functions of WhenVacant whose members have left.
func (p *Pool) Sweep() { run(p.vacated()) }

// vacated returns the functions to be called now.
func (p *Pool) vacated() (fs []func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blocks {
		if len(b.later) > 0 && b.vacant(p.lost) {
			fs = append(fs, b.clear()...)
		}
	}
	return fs
}

// clear returns the function to be called now that no member sees b.
func (b *block) clear() (later []func()) {
	later, b.later = b.later, nil
	return later
}

func run(fs []func()) {
	for _, f := range fs {
		f()
	}
}

// vacant reports whether no member reads b any more.
func (b *block) vacant(lost func(world.Rank) bool) bool {
	if b.uses%2 == 1 {
		return false
	}
	for _, g := range b.readers {
		if !lost(g.rank) && g.flags.uses.Load() == g.uses { // the memory of a lost reader may be freed
			return false
		}
	}
	return true
}

// flagsAt returns the beginning of the block that t names in its owner's arena.
func (p *Pool) flagsAt(arena []byte, t Token) *flags {
	return (*flags)(unsafe.Pointer(unsafe.SliceData(arena[t.place()*BlockSize:][:BlockSize])))
}

// part returns the memory that t names in its owner's arena.
func (p *Pool) part(arena []byte, t Token) Part {
	large := arena[p.largeAt()+t.place()*p.large:][:p.large]
	return Part{p.flagsAt(arena, t), unsafe.Pointer(unsafe.SliceData(large)), t.uses()}
}

// Enter returns the memory of another member of the Team that mine is for.
func (p *Pool) Enter(mine Token, rank world.Rank, arena []byte, t Token) Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, part := p.blocks[mine.place()], p.part(arena, t)
	b.readers = append(b.readers, reader{rank: rank, flags: part.flags, uses: t.uses()})
	return part
}

// Own returns this rank's memory that t names, and a function that claims its large buffer.
func (p *Pool) Own(t Token) (Part, func() error) {
	off := p.largeAt() + t.place()*p.large
	return p.part(p.arena, t), func() error { return p.claim(off, p.large) }
}
