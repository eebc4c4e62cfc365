package inproc

import (
	"fmt"
	"sync"

	"gompi/internal/mem"
)

// A region is memory that peers may read and write.
type region struct {
	mu   sync.RWMutex // read-locked while a peer copies
	data []byte
	gone bool
}

// Register implements transport.Getter.
func (e *endpoint) Register(b mem.Buffer) (uint64, error) {
	if !b.IsHost() {
		return 0, fmt.Errorf("cannot register memory in %s: inproc reaches host memory only", b.Space().Name())
	}
	e.box.mu.Lock()
	defer e.box.mu.Unlock()
	if e.box.regions == nil {
		e.box.regions = make(map[uint64]*region)
	}
	e.box.lastKey++
	e.box.regions[e.box.lastKey] = &region{data: b.HostSlice()}
	return e.box.lastKey, nil
}

// Unregister implements transport.Getter. On return no peer touches the memory.
func (e *endpoint) Unregister(key uint64) {
	e.box.mu.Lock()
	r := e.box.regions[key]
	delete(e.box.regions, key)
	e.box.mu.Unlock()
	if r != nil {
		r.retire()
	}
}

func (e *endpoint) unregisterAll() {
	e.box.mu.Lock()
	regions := e.box.regions
	e.box.regions = nil
	e.box.mu.Unlock()
	for _, r := range regions {
		r.retire()
	}
}

// retire waits for copies under way.
func (r *region) retire() {
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
}

// Get implements transport.Getter; it copies during the call.
func (e *endpoint) Get(peer int, key uint64, offset int64, dst mem.Buffer, token uint64) {
	err := e.access(peer, key, offset, dst.Size(), func(at []byte) { copy(dst.HostSlice(), at) })
	e.done = append(e.done, completion{token, err})
}

// Put implements transport.Getter; it copies during the call.
func (e *endpoint) Put(peer int, key uint64, offset int64, src mem.Buffer, token uint64) {
	err := e.access(peer, key, offset, src.Size(), func(at []byte) { copy(at, src.HostSlice()) })
	e.done = append(e.done, completion{token, err})
}

// access calls do with n bytes at offset of a peer's region.
func (e *endpoint) access(peer int, key uint64, offset int64, n int, do func([]byte)) error {
	b := &e.world.boxes[peer]
	b.mu.Lock()
	r, end := b.regions[key], b.end
	b.mu.Unlock()
	if end != nil {
		return end
	}
	if r == nil {
		return fmt.Errorf("rank %d has no memory registered with key %d", peer, key)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.gone {
		return fmt.Errorf("rank %d has taken back its memory with key %d", peer, key)
	}
	if size := int64(len(r.data)); offset < 0 || offset > size || int64(n) > size-offset {
		return fmt.Errorf("%d bytes at %d lie outside the %d bytes that rank %d registered", n, offset, size, peer)
	}
	do(r.data[offset : offset+int64(n)])
	return nil
}
