package engine

import "gompi/internal/world"

// This file lets a rank that fails while a communicator is made tell the members that have made it.
//
// All that make a communicator tell each other a number which each of them uses once: see Counter.
// The first member's number makes the context id. The numbers of the others make further names of
// the same communicator. So a rank that has told its number, and fails before it has heard those of
// the others, can revoke a communicator whose context id it does not know.

// Withdraw tells all ranks that this one is not in the communicator for which it has told counter:
// it breaks there because of a rank, this one or another, and a cause.
func (e *Engine) Withdraw(counter uint32, because world.Rank, cause string) {
	e.progress.Lock()
	defer e.progress.Exit()
	id, text := NextID(e.cfg.Rank, counter), revokeReason{rank: because, cause: cause}.encode()
	e.report(id, text)
	e.tell(id, text, func(world.Rank) bool { return true })
}

// OpenNew makes the Channel among members that have told each other the given counters, by rank.
func (e *Engine) OpenNew(members []world.Rank, counters []uint32) *Channel {
	return e.openAs(NextID(members[0], counters[0]), members, counters)
}

// withdrawn returns why a member of a new Channel has withdrawn, or another has revoked it.
func (ch *Channel) withdrawn() (v revokeReason, ok bool) {
	take := func(id uint64) {
		if why, is := ch.e.revoked.of[id]; is {
			v, ok = why, true
			delete(ch.e.revoked.of, id)
		}
	}
	if len(ch.e.revoked.of) > 0 {
		take(ch.ID)
		for r, n := range ch.counters {
			take(NextID(ch.World(r), n))
		}
	}
	return v, ok
}

// named returns the Channel that a revocation with an id is for, nil if there is none.
func (e *Engine) named(id uint64) *Channel {
	if ch := e.channels[id]; ch != nil {
		return ch
	}
	rank, counter := world.Rank(id>>32), uint32(id)
	for _, ch := range e.channels {
		if ch.counters == nil {
			continue
		}
		if r := ch.member(rank); r >= 0 && ch.counters[r] == counter {
			return ch
		}
	}
	return nil
}

// report sends the reason why a communicator broke to the launcher, which tells all ranks.
func (e *Engine) report(id uint64, text []byte) {
	if b := e.cfg.Boot; b != nil {
		if err := b.Revoke(id, text); err != nil {
			e.cfg.Log.Warn("cannot tell the others that a communicator broke", "comm", id, "err", err)
		}
	}
}

// tell sends the reason why a communicator broke to those of its members with which this rank has
// exchanged frames. The launcher tells all members, but this rank's goodbye could arrive before.
func (e *Engine) tell(id uint64, text []byte, member func(world.Rank) bool) {
	for _, page := range e.peers {
		for _, p := range page {
			if p != nil && member(p.rank) {
				e.postEnd(p, id, text)
			}
		}
	}
}
