package liveness

import (
	"slices"
	"sync"

	"gompi/internal/boot"
	"gompi/internal/world"
)

// A detacher reports to the agent that this rank will not touch a dead rank's arena again. When all
// ranks of the host have reported, the agent frees it. Earlier, a reader would take zeros for data.
//
// Only collectives of a Comm that holds the dead rank, and transports, touch its arena. They no
// longer do when Detached is sent, because:
//
//  1. The Ranks give up the rank. Under the lock under which transports copy, they make them give
//     up the rank, and break every Comm that holds the rank. A Comm that is opened later is broken
//     from the beginning. No collective begins on a broken Comm.
//  2. After that, no Comm that holds the rank touches memory: ReleaseMemory removes a Comm from
//     comms after its last collective. HoldMemory adds a Comm before its first collective; so a
//     Comm that is added later begins none, by 1.
//
// Comms that hold the rank are broken by the news of its death, so step 1 breaks only Comms that
// the rank had left in good order before its death. Step 1 waits until all Comms have released
// memory: Comms that a rank has left are still useful.
//
// Two deaths are independent of each other: each waits for its own Comms.
type detacher struct {
	to    boot.Detacher
	ranks *Ranks

	mu    sync.Mutex
	comms map[*Comm]bool
	dead  []world.Rank // of this host, not yet reported to the agent
}

// newDetacher returns nil if k's launcher takes no memory back. A nil detacher does nothing.
func newDetacher(k *Ranks) *detacher {
	to, ok := k.cfg.Boot.(boot.Detacher)
	if !ok || !k.cfg.Boot.Info().Recover {
		return nil
	}
	return &detacher{to: to, ranks: k, comms: map[*Comm]bool{}}
}

// HoldMemory notes that collectives of c may touch memory of its members.
func (c *Comm) HoldMemory() {
	if d := c.ranks.detach; d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.comms[c] = true
	}
}

// ReleaseMemory notes, taking the lock, that c is closed and that its collectives are over.
func (c *Comm) ReleaseMemory() {
	if d := c.ranks.detach; d != nil {
		d.mu.Lock()
		delete(d.comms, c)
		d.mu.Unlock()
		d.detach()
	}
}

// died notes the death of a rank.
func (d *detacher) died(rank world.Rank) {
	if d == nil {
		return
	}
	if info := d.ranks.cfg.Boot.Info(); info.NodeIndex(rank) == info.Node {
		d.add(rank)
		go d.detach() // ends soon: detach needs the lock of the rank's messages
	}
}

// detach gives up the dead ranks that no Comm holds any more.
func (d *detacher) detach() {
	for _, rank := range d.unused() {
		if d.ranks.giveUpMemory(rank) && d.take(rank) && d.to.Detached(rank) != nil {
			d.add(rank) // the agent reads nothing now; if the agent is gone the job ends
		}
	}
}

func (d *detacher) add(rank world.Rank) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = append(d.dead, rank)
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
		if c.Has(rank) {
			return true
		}
	}
	return false
}

// giveUpMemory gives up, under the lock that it takes, the memory that a dead rank shares with this
// rank. It reports false, and does nothing, if the job ends. From then on no transport touches
// memory of the dead rank, and every communicator that holds it is broken, including ones opened
// later. Running collectives through shared memory may still touch that memory.
func (k *Ranks) giveUpMemory(rank world.Rank) bool {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Exit()
	if k.ends {
		return false
	}
	// Until now communicators continued without a rank that had left before its death. From now on
	// they fail.
	if f := k.fates[rank]; f != nil && f.died != nil {
		f.lost = f.died
		p := k.cfg.Peers.Peer(rank)
		p.Lost = f.died
		for _, c := range k.comms {
			c.dismiss(p, true)
		}
	}
	k.cfg.Peers.Detach(rank)
	return true
}
