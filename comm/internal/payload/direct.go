// Package payload moves the bytes of messages once two ranks have agreed to exchange them. It knows
// neither requests nor queues: what it needs of a message it asks through the interface Message.
//
// A Copy takes a message between a device and the transport. Direct knows which buffers peers reach,
// and which they may still write. Ways finds out which of two ways is faster for long messages
// between ordinary memory.
package payload

import (
	"errors"
	"slices"
	"sync"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// Direct is what a rank knows of copies that its peers make from its memory or to it.
type Direct struct {
	Lengths
	mu         sync.Locker
	ways       map[world.Rank]*Ways // of long messages from the peers that have the choice
	registrars []transport.Registrar
	flushes    uint64
	dangling   []danglingWrite
}

// A danglingWrite is a buffer that was given up while a peer may have been writing to it, and
// may still be.
type danglingWrite struct {
	peer  world.Rank
	b     mem.Buffer
	flush uint64 // what the peer's answer has to be
}

// Init sets the lock that guards d. The exported methods up to MayBeWritten take it, the others are
// called with it held.
func (d *Direct) Init(mu sync.Locker) { d.mu = mu }

// SetLengths sets d's Lengths.
func (d *Direct) SetLengths(l Lengths) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Lengths = l
}

// Register tells the transports of memory from comm.Alloc, which must not lie in Go's heap.
func (d *Direct) Register(b mem.Buffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	for _, r := range d.registrars {
		err = errors.Join(err, r.Register(b))
	}
	return err
}

// Registers reports whether Register does something.
func (d *Direct) Registers() bool { return len(d.registrars) > 0 }

// Deregister undoes Register. It reports false if b may still be read or written.
func (d *Direct) Deregister(b mem.Buffer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := true
	for _, r := range d.registrars {
		done = r.Deregister(b) && done
	}
	return done
}

// MayBeWritten reports whether a peer may still be writing to b, the buffer of a receive that was
// given up. It may until it has answered a Flush, or left.
func (d *Direct) MayBeWritten(b mem.Buffer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.dangling, func(w danglingWrite) bool { return mem.Overlap(w.b, b) })
}

// Use adds a transport, if it wants to be told of memory.
func (d *Direct) Use(t transport.Transport) {
	if r, ok := t.(transport.Registrar); ok {
		d.registrars = append(d.registrars, r)
	}
}

// Source returns the place from which a peer may read b, ordinary memory, if that can be the
// fastest way for as many bytes; else 0.
func (d *Direct) Source(to transport.Getter, peer world.Rank, b mem.Buffer) uint64 {
	if !b.IsHost() || !d.has(b.Size()) && b.Size() < d.TriesFrom {
		return 0
	}
	return to.Source(peer, b.Raw())
}

// Choose begins a message of size bytes from a peer, that has the choice of Ways: it is Ways.Choose.
func (d *Direct) Choose(peer world.Rank, size int) (fetch bool, c Choice) {
	w := d.ways[peer]
	if w == nil {
		if d.ways == nil {
			d.ways = map[world.Rank]*Ways{}
		}
		w = new(Ways)
		d.ways[peer] = w
	}
	return w.Choose(&d.Lengths, size)
}

// End is Ways.End.
func (d *Direct) End(peer world.Rank, c Choice, size int, err error) { d.ways[peer].End(c, size, err) }

// GiveUp notes that a peer may be writing to b, which is given up. It returns the number of the
// Flush that asks the peer to stop.
func (d *Direct) GiveUp(peer world.Rank, b mem.Buffer) (flush uint64) {
	d.flushes++
	d.dangling = append(d.dangling, danglingWrite{peer, b, d.flushes})
	return d.flushes
}

// Flushed notes that a peer has stopped writing to the buffers given up before a Flush.
func (d *Direct) Flushed(peer world.Rank, flush uint64) {
	d.dangling = slices.DeleteFunc(d.dangling, func(w danglingWrite) bool { return w.peer == peer && w.flush <= flush })
}
