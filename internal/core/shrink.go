package core

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/core/group"
	"gompi/internal/core/liveness"
	"gompi/internal/core/network"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
)

// Shrink returns a communicator of the members of c that live, in c's order. c may be broken.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	d, err := c.renew(ctx, wire.Shrink)
	return d, c.fault("shrink", -1, err)
}

// renew returns a communicator in the place of c.
func (c *Comm) renew(ctx context.Context, kind wire.VoteKind) (*Comm, error) {
	if c.ops.Closed.Load() {
		return nil, ErrClosed
	}
	mine, g := c.offer(0, 0), c.Group()
	mine.Renewals = int64(c.renewals)
	o, err := c.vote(ctx, &wire.Vote{Kind: kind, Part: mine.Encode()})
	var members []group.Member
	if err == nil {
		g, members, err = g.Renew(o)
	}
	switch {
	case err != nil && o == nil && ctx.Err() != nil: // the others count on this rank
		c.gaveUp.Store(true)
		c.withdraw(kind.String(), mine, err)
		return nil, err
	case err != nil:
		c.memory.Give(shmsync.Token(mine.Block))
		return nil, err
	}
	late := c.admit(o)
	return c.assembleRenewal(kind, c.base, c.rules, g, members, mine).unless(ctx, late)
}

// Agree returns the bitwise AND of the flags of all members of c that live. c may be broken.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	o, err := c.vote(ctx, &wire.Vote{Kind: wire.Agree, Flags: flags})
	if err != nil {
		return 0, c.fault("agree", -1, err)
	}
	if len(o.Dead) > 0 {
		r := c.Group().Index(o.Dead[0])
		err = &RevokedError{Rank: r, Host: c.Host(r), Cause: "has died", Died: true}
	}
	return o.Flags, c.fault("agree", -1, err)
}

// AgreeOn is Agree of bytes: it returns the bytes of each living member, by rank, nil for the
// others, and the number of dead members, the same on all.
func (c *Comm) AgreeOn(ctx context.Context, mine []byte) (all [][]byte, dead int, err error) {
	o, err := c.vote(ctx, &wire.Vote{Kind: wire.Agree, Part: mine})
	if err != nil {
		return nil, 0, c.fault("agree", -1, err)
	}
	all = make([][]byte, c.Size())
	for _, v := range o.Living {
		all[c.ch.Member(v.Rank)] = v.Part
	}
	return all, len(o.Dead), nil
}

// errGaveUp: the other ranks continue in a communicator that this rank does not have.
var errGaveUp = errors.New("this rank gave up in an earlier Shrink or Restore, and must end")

func (c *Comm) vote(ctx context.Context, v *wire.Vote) (*wire.Outcome, error) {
	switch {
	case c.ops.Closed.Load():
		return nil, ErrClosed
	case c.gaveUp.Load():
		return nil, errGaveUp
	case c.Size() == 1:
		return &wire.Outcome{Flags: v.Flags, Living: []wire.Voter{{Rank: c.ch.World(0), Part: v.Part}}}, nil
	}
	v.Comm, v.Seq, v.Members = c.ch.ID, c.votes.Add(1), wire.Spans(c.Group().Ranks())
	return c.e.Live.Vote(ctx, v)
}

// Revoke breaks c on all members, without waiting for them.
func (c *Comm) Revoke(reason string) { c.ch.Break("revoked it: " + reason) }

// Restore is Shrink, with new processes in the places of members that died.
func (c *Comm) Restore(ctx context.Context) (*Comm, error) {
	d, err := c.renew(ctx, wire.Restore)
	return d, c.fault("restore", -1, err)
}

// Restored reports whether this process replaces a rank that died.
func (c *Comm) Restored() bool { return c.restored }

// admit lets the transports reach the replacements that o names.
func (p *process) admit(o *wire.Outcome) error {
	for _, r := range o.Replaced {
		if r.By == p.boot.Info().Rank {
			continue
		}
		if p.admits == nil {
			return errors.New("this rank cannot reach ranks that join later")
		}
		late, err := network.DecodeCard(r.Card)
		if err != nil {
			return fmt.Errorf("rank %d, in the place of %d: %w", r.By, r.Dead, err)
		}
		if err := p.e.Admit(r.By, func() error { return p.admits(r.By, late.Transport) }); err != nil {
			return fmt.Errorf("rank %d, in the place of %d: %w", r.By, r.Dead, err)
		}
		p.withDevices[r.By] = late.Devices
	}
	return nil
}

// replace makes this process a member of the communicator that invites it.
func (p *process) replace(ctx context.Context, in *wire.Invite, all agreement) (*Comm, error) {
	p.restored = true
	g := group.OfRanks(wire.Ranks(in.Members))
	mine := group.Member{Counter: int64(p.e.Live.Counter()), Block: int64(all.block)}
	v := &wire.Vote{Comm: in.Comm, Seq: in.Seq, Kind: wire.Restore, Members: in.Members, Part: mine.Encode()}
	var members []group.Member
	o, err := p.e.Live.Vote(ctx, v)
	if err == nil {
		g, members, err = g.Renew(o)
	}
	if err != nil {
		p.e.Live.Withdraw(uint32(mine.Counter), liveness.Reason{
			Rank: p.boot.Info().Rank, Cause: "failed to take a place in restore: " + err.Error()})
		return nil, errors.Join(err, p.leave(canceled()))
	}
	late := p.admit(o)
	return p.assembleRenewal(wire.Restore, firstName, all.rules, g, members, mine).unless(ctx, late)
}

// assembleRenewal returns the communicator of a Shrink or Restore. Its name has base, the first
// communicator's, the kind, and the number of renewals if above 1, which members tell replacements.
func (p *process) assembleRenewal(
	kind wire.VoteKind, base string, rules *path.Rules, g Group, members []group.Member, mine group.Member,
) *Comm {
	times := 1
	for _, m := range members {
		times = max(times, int(m.Renewals)+1)
	}
	name := base + "/" + kind.String()
	if times > 1 {
		name += fmt.Sprintf("(%d)", times)
	}
	c := p.assemble(name, rules, g, members, mine)
	c.base, c.renewals = base, times
	return c
}

// unless returns c, or, on an error, breaks c and returns the reason.
func (c *Comm) unless(ctx context.Context, err error) (*Comm, error) {
	if err == nil {
		return c, nil
	}
	c.Revoke(err.Error())
	return nil, errors.Join(err, c.Close(ctx))
}
