package liveness

import "gompi/internal/world"

// This file has the names of communicators, and lets a rank that fails while a communicator is made
// notify the members that have made it.
//
// All ranks that make a communicator send each other a number which each of them uses once: see
// Counter. The first member's number makes the context id. The numbers of the others make further
// names of the same communicator. So a rank that has sent its number, and fails before it has
// received those of the others, can revoke a communicator whose context id it does not know.

// NextID returns a context id that no other communicator of the job has: the
// world rank of the communicator's first member and a counter of that rank's.
func NextID(first world.Rank, counter uint32) uint64 {
	return uint64(first)<<32 | uint64(counter)
}

// MakerID returns the context id by which members of the communicator with the given one make
// communicators among themselves. There is no world rank with such a bit.
func MakerID(id uint64) uint64 { return id | 1<<62 }

// Counter returns the counter for the next context id with this rank as first member, and advances
// it. It takes the lock.
func (k *Ranks) Counter() uint32 {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Unlock()
	k.next++
	return k.next
}

// Withdraw notifies all ranks that this one is not in the communicator for which it has sent
// counter: it breaks there because of v, which names this rank or another. It takes the lock.
func (k *Ranks) Withdraw(counter uint32, v Reason) {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Exit()
	id, text := NextID(k.cfg.Rank, counter), v.Encode()
	k.report(id, text)
	k.sendReason(id, text, func(world.Rank) bool { return true })
}

// CatchUp breaks c, which is new, if one of its members has withdrawn, or another has revoked it.
func (c *Comm) CatchUp() {
	v, revoked := c.ranks.past.take(func(yield func(uint64) bool) {
		if !yield(c.ID) {
			return
		}
		for r, n := range c.counters {
			if !yield(NextID(c.World(r), n)) {
				return
			}
		}
	})
	if revoked {
		c.failBecause(v)
	}
}

// MayOpen reports whether frames for a communicator that does not exist here are kept for it.
func (k *Ranks) MayOpen(id uint64) bool { return k.past.mayOpen(id) }

// named returns the communicator that a revocation with an id is for, nil if there is none.
func (k *Ranks) named(id uint64) *Comm {
	if c := k.comms[id]; c != nil {
		return c
	}
	rank, counter := world.Rank(id>>32), uint32(id)
	for _, c := range k.comms {
		if c.counters == nil {
			continue
		}
		if r := c.Member(rank); r >= 0 && c.counters[r] == counter {
			return c
		}
	}
	return nil
}
