package core

import (
	"slices"
	"sync"

	"gompi/internal/boot"
	"gompi/internal/core/message"
	"gompi/internal/world"
)

// A detacher reports to the agent when this rank will not touch the arena of a dead rank again.
// After all ranks of the host have reported, the agent frees the arena. Earlier, a reader would
// take zeros for data.
//
// Only collectives of a Comm that holds the dead rank, and transports, touch its arena. They no
// longer do when Detached is sent, because:
//
//  1. Package liveness gives up the rank. Under the lock under which transports copy, it makes them
//     give up the rank, and breaks every Channel that holds the rank. A Channel that is opened later
//     is broken from the beginning. No collective begins on a broken Channel.
//  2. After that, every Comm that holds the rank is found to be closed, and its collectives to be
//     over: closing removes the Comm from comms after the last collective. A Comm is added before
//     its first collective; so a Comm that is added later begins none, by 1.
//
// Channels that hold the rank are broken by the news of its death, so step 1 breaks only Channels
// that the rank had left in good order before its death. Step 1 waits until all Comms are closed:
// Comms that a rank has left are still useful.
//
// Two deaths are independent of each other: each waits for its own Comms.
type detacher struct {
	boot boot.Detacher
	e    *message.Engine

	mu    sync.Mutex
	comms map[*Comm]bool
	dead  []world.Rank // of this host, not yet reported to the agent
}

// newDetacher returns nil if b takes no memory back. A nil detacher does nothing.
func newDetacher(b boot.Boot) *detacher {
	to, ok := b.(boot.Detacher)
	if !ok || !b.Info().Recover {
		return nil
	}
	return &detacher{boot: to, comms: map[*Comm]bool{}}
}

// of sets the message engine of the rank.
func (d *detacher) of(e *message.Engine) {
	if d != nil {
		d.e = e
	}
}

// opened notes that c may touch memory of its members.
func (d *detacher) opened(c *Comm) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.comms[c] = true
}

// over notes that c is closed and that its collectives are over.
func (d *detacher) over(c *Comm) {
	if d == nil {
		return
	}
	d.mu.Lock()
	delete(d.comms, c)
	d.mu.Unlock()
	d.detach()
}

// died returns the function that notes the death of a rank, nil if there is nothing to note. The
// message engine calls it with its lock held.
func (d *detacher) died() func(world.Rank) {
	if d == nil {
		return nil
	}
	info := d.boot.Info()
	return func(rank world.Rank) {
		if info.NodeIndex(rank) != info.Node {
			return
		}
		d.mu.Lock()
		d.dead = append(d.dead, rank)
		d.mu.Unlock()
		go d.detach() // ends soon: detach needs the lock of the rank's messages
	}
}

// detach gives up the dead ranks that no Comm holds any more.
func (d *detacher) detach() {
	for _, rank := range d.unused() {
		if d.e.Live.Detach(rank) && d.take(rank) {
			if d.boot.Detached(rank) != nil { // the agent reads nothing now; if the agent is gone the job ends
				d.mu.Lock()
				d.dead = append(d.dead, rank)
				d.mu.Unlock()
			}
		}
	}
}

// unused returns the dead ranks that no Comm holds.
func (d *detacher) unused() []world.Rank {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.dead), d.held)
}

// take removes rank from dead if no Comm holds rank, and reports whether it did.
func (d *detacher) take(rank world.Rank) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.dead, rank)
	if i < 0 || d.held(rank) {
		return false // another call has reported rank, or will when the Comm is closed
	}
	d.dead = slices.Delete(d.dead, i, i+1)
	return true
}

// held reports whether a Comm holds rank. The lock is held.
func (d *detacher) held(rank world.Rank) bool {
	for c := range d.comms {
		if c.ch.Has(rank) {
			return true
		}
	}
	return false
}
