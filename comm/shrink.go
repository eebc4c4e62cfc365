package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/comm/internal/shmsync"
	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

// Shrink returns a communicator of the members of c that live, in c's order (MPIX_Comm_shrink of
// ULFM). It is collective over those members, and works on a broken c: that is what it is for. All
// that get a communicator get the same one. A member that dies meanwhile is left out, or breaks the
// new communicator, which can be shrunk again.
//
// Shrink waits until every member of c has called it or has ended; members that wait in c for
// something else have got ErrRevoked, but those that wait in other communicators may need a Revoke.
// If ctx ends before, this rank is expected in the new communicator all the same, and breaks it.
// Later calls of Shrink, Restore and Agree on c then fail at once on this rank, which must end, so
// that the others continue without it.
// The ranks must be started by gompirun, or be goroutines of one process. A death ends the job unless
// gompirun has -recover. Members call
// Shrink and Agree of one c in the same order, one at a time; else all get ErrMismatch.
//
// c stays as it is; its memory is free again when it is closed. Shrink sends the launcher one
// message from each member, of about 40 bytes if the members' world ranks are consecutive, and gets
// one back, of about 30 bytes for each member.
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

// Agree returns the bitwise AND of the flags of all members of c that live (MPIX_Comm_agree of
// ULFM). All members that get a result get the same. If members have died, Agree returns the result
// of the others, and an ErrRevoked that names one of the dead, the same on all. It works on a
// broken c, and breaks nothing. What else holds for Shrink holds for Agree.
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

// agreeOn is Agree of bytes: it returns what each member that lives has given, by rank, nil for the
// others, and how many have died, the same on all.
func (c *Comm) agreeOn(ctx context.Context, mine []byte) (all [][]byte, dead int, err error) {
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

// Revoke breaks c on all members (MPIX_Comm_revoke of ULFM): operations under way and later ones
// fail with ErrRevoked, which names this rank and the reason. A member that has learned of a death
// so calls members that wait for it in other communicators. Revoke does not wait for them. On a
// broken c it does nothing.
func (c *Comm) Revoke(reason string) { c.ch.Break("revoked it: " + reason) }
