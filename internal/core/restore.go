package core

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/core/liveness"
	"gompi/internal/core/network"
	"gompi/internal/core/path"
	"gompi/internal/world"
)

// Restore is Shrink, with new processes in the places of members that died.
func (c *Comm) Restore(ctx context.Context) (*Comm, error) {
	d, err := c.renew(ctx, wire.Restore)
	return d, c.fault("restore", -1, err)
}

// Restored reports whether this process replaces a rank that died.
func (c *Comm) Restored() bool { return c.restored }

// admit lets the transports reach the replacements that others have.
func (p *process) admit(o *wire.Outcome) error {
	for _, r := range o.Replaced {
		if r.By == p.boot.Info().Rank {
			continue
		}
		if p.admits == nil {
			return errors.New("this rank reaches no ranks that come later")
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
	mine := member{counter: int64(p.e.Live.Counter()), block: int64(all.block)}
	v := &wire.Vote{Comm: in.Comm, Seq: in.Seq, Kind: wire.Restore, Members: in.Members, Part: mine.encode()}
	var ranks []world.Rank
	var members []member
	o, err := p.e.Live.Vote(ctx, v)
	if err == nil {
		ranks, members, err = living(wire.Ranks(in.Members), o)
	}
	if err != nil {
		p.e.Live.Withdraw(uint32(mine.counter), liveness.Reason{Rank: p.boot.Info().Rank, Cause: "failed to take a place in restore: " + err.Error()})
		return nil, errors.Join(err, p.leave(canceled()))
	}
	late := p.admit(o)
	return p.assembleRenewal(wire.Restore, firstName, all.rules, ranks, members, mine).unless(ctx, late)
}

// assembleRenewal returns the communicator of a Shrink or Restore, in a row of renewals that
// began with the communicator named base. Replacements learn from the others how long that row
// is.
func (p *process) assembleRenewal(kind wire.VoteKind, base string, rules *path.Rules, ranks []world.Rank, members []member, mine member) *Comm {
	times := 1
	for _, m := range members {
		times = max(times, int(m.renewals)+1)
	}
	name := base + "/" + kind.String()
	if times > 1 {
		name += fmt.Sprintf("(%d)", times)
	}
	c := p.assemble(name, rules, ranks, members, mine)
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

// partSize is the bytes of a rank's part in a Shrink or Restore.
const partSize = 24

// encode returns the input of decodeMember.
func (m member) encode() []byte {
	part := binary.LittleEndian.AppendUint64(nil, uint64(m.counter))
	part = binary.LittleEndian.AppendUint64(part, uint64(m.block))
	return binary.LittleEndian.AppendUint64(part, uint64(m.renewals))
}

// decodeMember decodes the result of encode.
func decodeMember(part []byte) member {
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(part[8*i:])) }
	return member{counter: word(0), block: word(1), renewals: word(2)}
}

// living returns the members of a new communicator, and their parts: the living ranks in the
// given order, with replacements in the places of the dead.
func living(order []world.Rank, o *wire.Outcome) ([]world.Rank, []member, error) {
	switch {
	case o.Differ != "":
		return nil, nil, fmt.Errorf("%w: %s", ErrMismatch, o.Differ)
	case o.Failed != "":
		return nil, nil, errors.New(o.Failed)
	}
	by := map[world.Rank]world.Rank{}
	for _, r := range o.Replaced {
		by[r.Dead] = r.By
	}
	at := make(map[world.Rank]member, len(o.Living))
	for _, v := range o.Living {
		if len(v.Part) != partSize {
			return nil, nil, fmt.Errorf("rank %d sends %d bytes: want %d; are all ranks of one gompi version?", v.Rank, len(v.Part), partSize)
		}
		at[v.Rank] = decodeMember(v.Part)
	}
	var ranks []world.Rank
	var members []member
	for _, r := range order {
		if late, replaced := by[r]; replaced {
			r = late
		}
		if m, lives := at[r]; lives {
			ranks, members = append(ranks, r), append(members, m)
		}
	}
	return ranks, members, nil
}
