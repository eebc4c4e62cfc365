package liveness

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/calls"
	"gompi/internal/core/progress"
	"gompi/internal/core/record"
	"gompi/internal/seg"
)

// This file lets the living members of a communicator agree. The launcher decides, since it alone
// knows which ranks live: a member votes, and gets the outcome when all have voted or ended.

// A ballot is an agreement in which this rank has voted, and whose outcome it waits for.
type ballot struct {
	record.Wait
	vote    *wire.Vote
	outcome *wire.Outcome
}

type ballotKey struct{ comm, seq uint64 }

// errNoLauncher: no process can decide.
var errNoLauncher = errors.New("there is no launcher to decide it")

// Vote votes, and returns the agreement of the living members, also with their error. If ctx ends
// earlier, there is no Outcome, but this rank has voted: the other members may count on this rank
// in the communicator that they create, from which it has to withdraw. Vote takes the lock.
func (k *Ranks) Vote(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Exit()
	switch {
	case k.cfg.Boot == nil:
		return nil, errNoLauncher
	case k.ends:
		return nil, k.whyEnding()
	}
	b, key := &ballot{vote: v}, ballotKey{v.Comm, v.Seq}
	b.Init(k.flight, b)
	b.Apart = progress.PlaceOf(ctx).Background
	k.ballots[key] = b
	defer delete(k.ballots, key)
	if err := k.cfg.Boot.Vote(v); err != nil {
		return nil, err
	}
	err := k.cfg.Progress.Await(ctx, &b.Waiter)
	switch o := b.outcome; {
	case o == nil && err == nil: // nothing will come
		return nil, k.whyEnding()
	case o == nil:
		return nil, err
	case o.Differ != "":
		return o, fmt.Errorf("%w: %s", ErrMismatch, o.Differ)
	case o.Failed != "":
		return o, errors.New(o.Failed)
	}
	return b.outcome, nil
}

// agreed takes an outcome.
func (k *Ranks) agreed(o *wire.Outcome) {
	if b := k.ballots[ballotKey{o.Comm, o.Seq}]; b != nil && !k.ends {
		b.outcome = o
		k.cfg.Progress.MakeReady(&b.Waiter)
	}
}

// endBallots ends all waits for outcomes, because none will come.
func (k *Ranks) endBallots() {
	for _, b := range k.ballots {
		k.cfg.Progress.MakeReady(&b.Waiter)
	}
}

// Describe implements record.Call.
func (b *ballot) Describe() (seg.Call, seg.Ticket, bool) {
	kind := calls.Agree
	switch b.vote.Kind {
	case wire.Shrink:
		kind = calls.Shrink
	case wire.Restore:
		kind = calls.Restore
	}
	return seg.Call{Comm: b.vote.Comm, Kind: kind, Peer: -1, Seq: int64(b.vote.Seq)}, 0, false
}

// Stalled implements record.Call.
func (b *ballot) Stalled() {}
