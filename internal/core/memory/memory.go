// Package memory is the memory of a rank, and the access to the memory of other ranks without their
// participation. A rank allocates in the heap that the ranks of its host map, or ordinary memory,
// which it registers with transports. It accesses another rank's memory where that is mapped, by
// the kernel, or by network devices.
//
// Memory that was given back is freed when neither peers nor transports use it any more.
package memory

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"syscall"

	"gompi/internal/core/message"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// ErrMemory: some rank has less memory than requested. If the call is collective, all ranks get
// ErrMemory; nothing was taken and nothing is broken.
var ErrMemory = errors.New("not enough memory")

// An Allocation is memory that was allocated and not given back.
type Allocation struct {
	mem.Buffer
	Heap   int    // place in this rank's heap, -1 for ordinary memory
	mapped []byte // ordinary memory outside Go's heap, nil if there is none
}

// Allocations are a set.
type Allocations struct {
	mu  sync.Mutex
	all []Allocation
}

// Add adds x.
func (l *Allocations) Add(x Allocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, x)
}

// index returns the index of the Allocation of b, -1 if there is none. The caller holds the lock.
func (l *Allocations) index(b mem.Buffer) int {
	return slices.IndexFunc(l.all, func(x Allocation) bool { return mem.Same(x.Buffer, b) })
}

// Find returns the Allocation of b.
func (l *Allocations) Find(b mem.Buffer) (x Allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		return l.all[i], true
	}
	return x, false
}

// Take removes an Allocation of b and returns it. Any empty Allocation serves an empty b.
func (l *Allocations) Take(b mem.Buffer) (x Allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		x, ok = l.all[i], true
		l.all = slices.Delete(l.all, i, i+1)
	}
	return x, ok
}

// TakeAll removes and returns all.
func (l *Allocations) TakeAll() []Allocation {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// A Memory is the memory of a rank.
type Memory struct {
	Engine *message.Engine
	Log    *slog.Logger
	Host   *Host        // nil without memory that all may map
	Aside  func() *Host // the same without a transport that uses it; nil if none
	Local  Allocations  // of Alloc, which no communicator has
	mapped Allocations  // given back, but a peer or a transport may still use them
}

// Mapping returns the memory that ranks of this host map, even if their messages go by TCP; nil if
// there is none.
func (m *Memory) Mapping() *Host {
	if m.Host != nil || m.Aside == nil {
		return m.Host
	}
	return m.Aside()
}

// Register registers x with transports, if x can be.
func (m *Memory) Register(x Allocation) error {
	if x.Heap < 0 && x.mapped == nil {
		return nil
	}
	return m.Engine.Mover.Register(x.Buffer)
}

// Free frees x when no peer can write to x any more. After a failed operation a peer may still
// write, and would else write into the next Allocation.
func (m *Memory) Free(x Allocation) {
	switch {
	case x.mapped != nil:
		m.mapped.Add(x)
		m.sweep()
	case x.Heap >= 0:
		if h := m.Mapping(); !h.free(m.Engine, x) {
			h.late.Add(x)
		}
	}
}

// sweep frees the mapped memory that was given back and is unused by now.
func (m *Memory) sweep() {
	m.mapped.mu.Lock()
	defer m.mapped.mu.Unlock()
	m.mapped.all = slices.DeleteFunc(m.mapped.all, func(x Allocation) bool {
		over := unused(m.Engine, x)
		if over {
			_ = syscall.Munmap(x.mapped) // fails only for other memory
		}
		return over
	})
}

// unused reports whether neither peers nor transports use x any more.
func unused(e *message.Engine, x Allocation) bool {
	return !e.Mover.MayBeWritten(x.Buffer) && e.Mover.Deregister(x.Buffer)
}

// leastProbed is the least size for which Ordinary first asks the kernel whether it has the memory:
// Go ends the process if the kernel refuses memory for its heap.
const leastProbed = 64 << 20

// Ordinary allocates memory that no other rank sees. Transports that register memory get memory
// outside Go's heap.
func (m *Memory) Ordinary(t mem.Type, n int) (Allocation, error) {
	registers := n > 0 && m.Engine.Mover.Registers()
	if size := n * t.Size(); registers || size >= leastProbed {
		m.sweep()
		const access, private = syscall.PROT_READ | syscall.PROT_WRITE, syscall.MAP_PRIVATE | syscall.MAP_ANON
		bytes, err := syscall.Mmap(-1, 0, size, access, private)
		switch {
		case err != nil:
			return Allocation{}, fmt.Errorf("%w: %s: %w", ErrMemory, seg.Amount(int64(size)), err)
		case registers:
			return Allocation{mem.HostBytes(t, n, bytes), -1, bytes}, nil
		}
		_ = syscall.Munmap(bytes)
	}
	b, err := mem.Host.Alloc(t, n)
	return Allocation{b, -1, nil}, err
}

// Alloc allocates memory for this rank alone: in the heap, if there is one.
func (m *Memory) Alloc(t mem.Type, n int) (Allocation, error) {
	if n > 0 && m.Host != nil {
		return m.Host.Alloc(m.Engine, t, n)
	}
	if err := hasRoom(n*t.Size(), seg.MemoryLimit()); err != nil {
		return Allocation{}, err
	}
	return m.Ordinary(t, n)
}

// hasRoom returns an error if a host has fewer bytes left.
func hasRoom(size int, limit seg.Limit) error {
	if int64(size) > limit.Left {
		return fmt.Errorf("%w: this rank wants %s, %v", ErrMemory, seg.Amount(int64(size)), limit)
	}
	return nil
}

// Take allocates a block of shared memory for a new communicator, 0 if there is none.
func (m *Memory) Take() shmsync.Token {
	if m.Host == nil {
		return 0
	}
	t, err := m.Host.Pool.Take()
	if err != nil {
		m.Log.Warn("no shared memory for the collectives of a communicator: messages have to do", "err", err)
	}
	return t
}

// Give frees a block.
func (m *Memory) Give(t shmsync.Token) {
	if m.Host != nil {
		m.Host.Pool.Give(t)
		m.Host.Sweep(m.Engine)
	}
}
