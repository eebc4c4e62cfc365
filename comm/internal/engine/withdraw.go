package engine

import (
	"context"

	"gompi/comm/internal/liveness"
	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

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
	id, text := NextID(e.cfg.Rank, counter), liveness.Reason{Rank: because, Cause: cause}.Encode()
	e.live.Report(id, text)
	e.tell(id, text, func(world.Rank) bool { return true })
}

// OpenNew makes the Channel among members that have told each other the given counters, by rank.
func (e *Engine) OpenNew(members []world.Rank, counters []uint32) *Channel {
	return e.openAs(NextID(members[0], counters[0]), members, counters)
}

// withdrawn returns why a member of a new Channel has withdrawn, or another has revoked it.
func (ch *Channel) withdrawn() (liveness.Reason, bool) {
	return ch.e.past.Take(func(yield func(uint64) bool) {
		if !yield(ch.ID) {
			return
		}
		for r, n := range ch.counters {
			if !yield(NextID(ch.World(r), n)) {
				return
			}
		}
	})
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
		if r := ch.Member(rank); r >= 0 && ch.counters[r] == counter {
			return ch
		}
	}
	return nil
}

// tell sends the reason why a communicator broke to those of its members with which this rank has
// exchanged frames. The launcher tells all members, but this rank's goodbye could arrive before.
func (e *Engine) tell(id uint64, text []byte, member func(world.Rank) bool) {
	for p := range e.peers.All {
		if member(p.Rank) {
			e.postEnd(p, id, text)
		}
	}
}

// Vote is liveness.Ranks.Vote.
func (e *Engine) Vote(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	e.progress.Lock()
	defer e.exitPolling()
	return e.live.Vote(ctx, v)
}

// Admit calls set, which lets transports reach a rank that they have not reached so far.
func (e *Engine) Admit(rank world.Rank, set func() error) error {
	e.progress.Lock()
	defer e.progress.Unlock()
	if err := set(); err != nil {
		return err
	}
	e.peers.Peer(rank)
	return nil
}
