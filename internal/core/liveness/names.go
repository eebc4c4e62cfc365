package liveness

import "gompi/internal/world"

// This file has the names of communicators. They let a rank that fails while a communicator is
// created notify the members that have created it. All creating ranks send each other a number that
// each of them uses once: see Counter. The first member's number makes the context id, the others
// make further names of the same communicator. So a rank that has sent its number, and fails before
// the others arrive, can revoke a communicator without knowing its context id.

// NextID returns a context id that no other communicator of the job has: the
// world rank of the communicator's first member and a counter of that rank's.
func NextID(first world.Rank, counter uint32) uint64 {
	return uint64(first)<<32 | uint64(counter)
}

// MakerID returns the context id by which members of the communicator with the given id create
// communicators among themselves. World ranks never have the bit that MakerID sets.
func MakerID(id uint64) uint64 { return id | 1<<62 }

// Counter returns the counter for the next context id with this rank as first member, and
// advances the counter. Counter takes the lock.
func (k *Ranks) Counter() uint32 {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Unlock()
	k.next++
	return k.next
}

// Withdraw, which takes the lock, notifies all ranks that this rank is not in the communicator for
// which it has sent counter: it breaks there because of v, which names this rank or another.
func (k *Ranks) Withdraw(counter uint32, v Reason) {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Exit()
	id, text := NextID(k.cfg.Rank, counter), v.Encode()
	k.report(id, text)
	k.sendReason(id, text, func(world.Rank) bool { return true })
}

// CatchUp breaks c, which is new, if a member has withdrawn or has revoked c.
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

// MayOpen reports whether frames for a communicator that does not exist here are kept.
func (k *Ranks) MayOpen(id uint64) bool { return !k.past.revoked.has(id) && !k.past.closed.has(id) }

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
