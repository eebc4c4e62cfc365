package comm

import (
	"slices"
	"sync"

	"gompi/comm/internal/engine"
	"gompi/internal/boot"
	"gompi/internal/world"
)

// A detacher tells the agent when this rank will not touch the arena of a dead rank again. When all
// ranks of the host have told so, the agent frees the arena. Earlier, a reader would take zeros for
// data.
//
// Only collectives of a Comm that holds the dead rank, and transports, touch its arena. Why they do
// so no more when Detached is sent:
//
//  1. The engine has handled the news of the death: so every Channel that holds the dead rank is
//     broken, and one that is opened later is broken from the beginning. No collective begins on a
//     broken Channel.
//  2. Then every Comm that holds the dead rank is found to be closed, and its collectives to be
//     over: closing removes the Comm from comms behind the last collective. A Comm is added before
//     its first collective. One that is added after the look has a broken Channel, by 1.
//  3. Then the transports give up the rank, under the engine's lock, under which they copy.
//
// Two deaths are independent of each other: each waits for its own Comms.
type detacher struct {
	boot boot.Detacher
	e    *engine.Engine

	mu    sync.Mutex
	comms map[*Comm]bool
	dead  []world.Rank // of this host, of which the agent has not been told
}

// newDetacher returns nil if b takes no memory back. A nil detacher does nothing.
func newDetacher(b boot.Boot) *detacher {
	to, ok := b.(boot.Detacher)
	if !ok || !b.Info().Recover {
		return nil
	}
	return &detacher{boot: to, comms: map[*Comm]bool{}}
}

// of sets the engine of the rank.
func (d *detacher) of(e *engine.Engine) {
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

// died returns the function that notes that a rank has died, nil if there is nothing to note. The
// engine calls it with its lock held.
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
		go d.detach() // ends soon: it needs the engine's lock
	}
}

// detach gives up the dead ranks that no Comm holds any more.
func (d *detacher) detach() {
	for _, rank := range d.unused() {
		if d.e.Detach(rank) {
			_ = d.boot.Detached(rank) // without its agent the job ends
		}
	}
}

// unused removes those ranks from dead and returns them.
func (d *detacher) unused() (ranks []world.Rank) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = slices.DeleteFunc(d.dead, func(rank world.Rank) bool {
		for c := range d.comms {
			if c.ch.Has(rank) {
				return false
			}
		}
		ranks = append(ranks, rank)
		return true
	})
	return ranks
}
