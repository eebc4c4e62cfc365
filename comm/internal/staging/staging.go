// Package staging lends host memory, pinned where devices want it, that stands for memory of
// devices: transports carry host memory alone.
package staging

import (
	"math/bits"
	"sync"

	"gompi/internal/mem"
)

// Memory of another Space is staged: host memory takes its place in messages, and its content
// goes there before, or back after.

// A Pool lends host memory, pinned where the Space has such. Pinning
// takes a millisecond, so what comes back is kept until the last communicator is
// closed: in powers of two, as much as was ever in use at a time.
type Pool struct {
	mu   sync.Mutex
	free map[sizeClass][]mem.Buffer
}

type sizeClass struct {
	space mem.Space
	log2  int // of bytes
}

// leastStaged is log2 of the least that is lent, so that small messages share it.
const leastStaged = 16

// A Stage is host memory that stands for a mem.Buffer.
type Stage struct {
	Of, Host mem.Buffer
	lent     mem.Buffer // empty if host is the mem.Buffer itself
}

// Room returns a stage for b, of arbitrary content.
func (p *Pool) Room(b mem.Buffer) (Stage, error) {
	if b.IsHost() {
		return Stage{Of: b, Host: b}, nil
	}
	return p.Stage(b)
}

// Stage is Room also for host memory whose content must not be touched yet.
func (p *Pool) Stage(b mem.Buffer) (Stage, error) {
	lent, err := p.Lend(b.Space(), b.Size())
	if err != nil {
		return Stage{}, err
	}
	return Stage{Of: b, Host: mem.HostBytes(b.Type(), b.Len(), lent.HostSlice()), lent: lent}, nil
}

// Lend implements engine.Lender.
func (p *Pool) Lend(s mem.Space, bytes int) (mem.Buffer, error) {
	class := classOf(s, bytes)
	if lent, ok := p.take(class); ok {
		return lent, nil
	}
	alloc := mem.Host.Alloc
	if d, ok := s.(mem.Pinner); ok {
		alloc = d.AllocHost
	}
	return alloc(mem.U8, 1<<class.log2)
}

// Return implements engine.Lender.
func (p *Pool) Return(s mem.Space, lent mem.Buffer) {
	class := classOf(s, lent.Size())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[sizeClass][]mem.Buffer{}
	}
	p.free[class] = append(p.free[class], lent)
}

func classOf(s mem.Space, bytes int) sizeClass {
	return sizeClass{s, max(leastStaged, bits.Len(uint(max(bytes, 1)-1)))}
}

// take takes what is kept of a class, if there is something.
func (p *Pool) take(class sizeClass) (mem.Buffer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.free[class]
	if len(kept) == 0 {
		return mem.Buffer{}, false
	}
	last := len(kept) - 1
	p.free[class] = kept[:last]
	return kept[last], true
}

// Load returns a stage for b with its content.
func (p *Pool) Load(b mem.Buffer) (Stage, error) {
	s, err := p.Room(b)
	if err != nil || s.lent.Len() == 0 {
		return s, err
	}
	if err := mem.Copy(s.Host, b); err != nil {
		p.End(s)
		return Stage{}, err
	}
	return s, nil
}

// Store copies the first n bytes of a stage to what it stands for.
func (s Stage) Store(n int) error {
	if s.lent.Len() == 0 || n == 0 {
		return nil
	}
	return mem.Copy(s.Of.Raw().Slice(0, n), s.Host.Raw().Slice(0, n))
}

// End takes back what a stage was lent.
func (p *Pool) End(s Stage) {
	if s.lent.Len() > 0 {
		p.Return(s.Of.Space(), s.lent)
	}
}

// Release gives all memory back. Devices are called with no lock held: they may block.
func (p *Pool) Release() {
	p.mu.Lock()
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for class, kept := range free {
		if d, ok := class.space.(mem.Pinner); ok {
			for _, b := range kept {
				d.FreeHost(b) // an error is the device's, which has told it before
			}
		}
	}
}

// Kept returns how many bytes each piece of memory has that is kept.
func (p *Pool) Kept() (sizes []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kept := range p.free {
		for _, b := range kept {
			sizes = append(sizes, b.Size())
		}
	}
	return sizes
}
