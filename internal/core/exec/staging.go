package exec

import (
	"math/bits"
	"sync"

	"gompi/internal/mem"
)

// A Pool lends host memory in which buffers of devices are staged, since transports carry host
// memory only. Pinning memory takes a millisecond, so the Pool keeps returned memory until the
// last communicator is closed: in sizes of powers of two, as much as was ever in use at a time.
type Pool struct {
	mu   sync.Mutex
	free map[sizeClass][]mem.Buffer
}

type sizeClass struct {
	space mem.Space
	log2  int // of bytes
}

// leastStaged is log2 of the smallest size, which all short messages use.
const leastStaged = 16

// A Stage is host memory in the place of a mem.Buffer: Load copies the buffer to the Stage before
// a message is sent, Store copies the Stage back after a message was received.
type Stage struct {
	Of, Host mem.Buffer
	lent     mem.Buffer // empty if Host is Of
}

// Get returns a Stage for b with arbitrary content. For host memory that is b itself.
func (p *Pool) Get(b mem.Buffer) (Stage, error) {
	if b.IsHost() {
		return Stage{Of: b, Host: b}, nil
	}
	lent, err := p.Lend(b.Space(), b.Size())
	if err != nil {
		return Stage{}, err
	}
	return Stage{Of: b, Host: mem.HostLike(b, b.Len(), lent.HostSlice()), lent: lent}, nil
}

// Lend implements payload.Lender.
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

// Return implements payload.Lender.
func (p *Pool) Return(s mem.Space, lent mem.Buffer) {
	class := classOf(s, lent.Size())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[sizeClass][]mem.Buffer{}
	}
	p.free[class] = append(p.free[class], lent)
}

// classOf returns the class of memory for s: the device's own if the device has to pin the memory.
func classOf(s mem.Space, bytes int) sizeClass {
	if _, pins := s.(mem.Pinner); !pins {
		s = mem.Host
	}
	return sizeClass{s, max(leastStaged, bits.Len(uint(max(bytes, 1)-1)))}
}

// take takes kept memory of a class, if any.
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

// Load returns a Stage for b with b's content.
func (p *Pool) Load(b mem.Buffer) (Stage, error) {
	s, err := p.Get(b)
	if err != nil || s.lent.Len() == 0 {
		return s, err
	}
	if err := mem.Copy(s.Host, b); err != nil {
		p.End(s)
		return Stage{}, err
	}
	return s, nil
}

// Store copies the first n bytes of s to its buffer.
func (s Stage) Store(n int) error {
	if s.lent.Len() == 0 || n == 0 {
		return nil
	}
	return mem.Copy(s.Of.Raw().Slice(0, n), s.Host.Raw().Slice(0, n))
}

// End takes back the memory of s.
func (p *Pool) End(s Stage) {
	if s.lent.Len() > 0 {
		p.Return(s.Of.Space(), s.lent)
	}
}

// Release frees all memory. It calls devices, which may block, without holding the lock.
func (p *Pool) Release() {
	p.mu.Lock()
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for class, kept := range free {
		if d, ok := class.space.(mem.Pinner); ok {
			for _, b := range kept {
				d.FreeHost(b) // the device has reported the error before
			}
		}
	}
}

// Kept returns the sizes of the memory that the Pool keeps.
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
