package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/core/shmsync"
	"gompi/internal/world"
)

// Shrink returns a communicator of the members of c that live, in c's order. c may be broken.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	d, err := c.renew(ctx, wire.Shrink)
	return d, c.fault("shrink", -1, err)
}

// renew returns a communicator in the place of c.
func (c *Comm) renew(ctx context.Context, kind wire.VoteKind) (*Comm, error) {
	if c.shut.Load() {
		return nil, ErrClosed
	}
	mine := c.offer()
	mine.renewals = int64(c.renewals)
	o, err := c.vote(ctx, &wire.Vote{Kind: kind, Part: mine.encode()})
	var ranks []world.Rank
	var members []member
	if err == nil {
		ranks, members, err = living(c.Group().ranks, o)
	}
	switch {
	case err != nil && o == nil && ctx.Err() != nil: // the others count on this rank
		c.gaveUp.Store(true)
		c.withdraw(kind.String(), mine, err)
		return nil, err
	case err != nil:
		c.give(shmsync.Token(mine.block))
		return nil, err
	}
	late := c.admit(o)
	return c.assembleRenewal(kind, c.base, c.rules, ranks, members, mine).unless(ctx, late)
}

// Agree returns the bitwise AND of the flags of all members of c that live. c may be broken.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	o, err := c.agree(ctx, &wire.Vote{Kind: wire.Agree, Flags: flags})
	if err != nil {
		return 0, c.fault("agree", -1, err)
	}
	if len(o.Dead) > 0 {
		r := slices.Index(c.Group().ranks, o.Dead[0])
		err = &RevokedError{Rank: r, Host: c.Host(r), Cause: "has died", Died: true}
	}
	return o.Flags, c.fault("agree", -1, err)
}

func (c *Comm) agree(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	if c.shut.Load() {
		return nil, ErrClosed
	}
	o, err := c.vote(ctx, v)
	switch {
	case err != nil:
		return nil, err
	case o.Differ != "":
		return nil, fmt.Errorf("%w: %s", ErrMismatch, o.Differ)
	case o.Failed != "":
		return nil, errors.New(o.Failed)
	}
	return o, nil
}

// AgreeOn is Agree of bytes: it returns the bytes of each living member, by rank, nil for the
// others, and how many have died, the same on all.
func (c *Comm) AgreeOn(ctx context.Context, mine []byte) (all [][]byte, dead int, err error) {
	o, err := c.agree(ctx, &wire.Vote{Kind: wire.Agree, Part: mine})
	if err != nil {
		return nil, 0, c.fault("agree", -1, err)
	}
	all = make([][]byte, c.Size())
	for _, v := range o.Living {
		all[c.ch.Member(v.Rank)] = v.Part
	}
	return all, len(o.Dead), nil
}

// errGaveUp: the others have gone on to a communicator that this rank has not got.
var errGaveUp = errors.New("this rank gave up in the Shrink or Restore before, and must end")

func (c *Comm) vote(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	if c.gaveUp.Load() {
		return nil, errGaveUp
	}
	if c.Size() == 1 {
		return &wire.Outcome{Flags: v.Flags, Living: []wire.Voter{{Rank: c.Group().ranks[0], Part: v.Part}}}, nil
	}
	v.Comm, v.Seq, v.Members = c.ch.ID, c.votes.Add(1), wire.Spans(c.Group().ranks)
	return c.e.Live.Vote(ctx, v)
}

// Revoke breaks c on all members, without waiting for them.
func (c *Comm) Revoke(reason string) { c.ch.Break("revoked it: " + reason) }
