package engine

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

// This file lets the living members of a communicator agree. The launcher decides, since it alone
// knows which ranks live: a member votes, and hears the outcome when all have voted or ended.

// A ballot is an agreement in which this rank has voted, and for whose outcome it waits.
type ballot struct {
	waiter  *waiter
	outcome *wire.Outcome
}

type ballotKey struct{ comm, seq uint64 }

// errNoLauncher: nobody can decide.
var errNoLauncher = errors.New("there is no launcher to decide it")

// Vote votes, and returns what the living members have agreed on. If ctx ends before, this rank has
// voted all the same: the others may count on it in the communicator that they make, from which it
// has to Withdraw.
func (e *Engine) Vote(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	e.progress.Lock()
	defer e.exitPolling()
	switch {
	case e.cfg.Boot == nil:
		return nil, errNoLauncher
	case e.jobEnding:
		return nil, e.whyEnding()
	}
	w := e.newWaiter()
	defer e.freeWaiter(w)
	w.voted = v
	b, key := &ballot{waiter: w}, ballotKey{v.Comm, v.Seq}
	e.ballots[key] = b
	defer delete(e.ballots, key)
	if err := e.cfg.Boot.Vote(v); err != nil {
		return nil, err
	}
	err := e.progress.Await(ctx, &w.Waiter)
	switch {
	case b.outcome != nil:
		return b.outcome, nil
	case err == nil: // nothing will come
		return nil, e.whyEnding()
	}
	return nil, err
}

// Admit calls set, which lets transports reach a rank that they have not reached so far.
func (e *Engine) Admit(rank world.Rank, set func() error) error {
	e.progress.Lock()
	defer e.progress.Unlock()
	if err := set(); err != nil {
		return err
	}
	e.peer(rank)
	return nil
}

// agreed takes an outcome.
func (e *Engine) agreed(o *wire.Outcome) {
	if b := e.ballots[ballotKey{o.Comm, o.Seq}]; b != nil && !e.jobEnding {
		b.outcome = o
		e.rouse(b.waiter)
	}
}

// endBallots ends all waits for outcomes, because none will come.
func (e *Engine) endBallots() {
	for _, b := range e.ballots {
		e.rouse(b.waiter)
	}
}

// whyEnding returns why no outcome will come.
func (e *Engine) whyEnding() error {
	return &RevokedError{Rank: -1, Cause: fmt.Sprintf("the job ends: %s", e.ending)}
}
