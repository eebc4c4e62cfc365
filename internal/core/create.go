package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/group"
	"gompi/internal/core/liveness"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
)

// Undefined is the color of a rank that is to be in no new communicator (MPI_UNDEFINED).
const Undefined = -1

// A Group is an ordered set of ranks of a communicator.
type Group = group.Group

// Group returns all ranks of c, in order.
func (c *Comm) Group() Group { return group.Of(&c.ch.Comm) }

// Dup returns a communicator of the same ranks whose messages c cannot see.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	return c.divide(ctx, calls.Dup, 0, c.Rank(), nil)
}

// StartDup starts a Dup. When the Request is complete, with err or nil, the caller calls finish
// once, which waits for nothing.
func (c *Comm) StartDup() (r Request, finish func(err error) (*Comm, error)) {
	mine, all := c.offer(0, c.Rank()), make([]int64, group.MemberWords*c.Size())
	o := new(call.Call).Allgather(mem.Of(mine.Words()), mem.Of(all))
	o.Fingerprint = call.Fingerprint{Kind: calls.Dup}
	return c.Start(o), func(err error) (*Comm, error) {
		return c.divided(calls.Dup, mine, all, err)
	}
}

// Split returns a communicator of the ranks that gave the same color, ordered by key and rank, nil
// for the color Undefined.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if color < Undefined {
		return nil, c.fault("split", -1, BadArgument("color %d: want 0 or more, or Undefined", color))
	}
	return c.divide(ctx, calls.Split, int64(color), key, nil)
}

// SplitHost is Split by host, in rank order.
func (c *Comm) SplitHost(ctx context.Context) (*Comm, error) {
	return c.divide(ctx, calls.SplitHost, int64(c.boot.Info().NodeIndex(c.ch.World(c.Rank()))), c.Rank(), nil)
}

// Create returns a communicator of the ranks of g, nil on a rank outside its g. Create is
// collective over all of c.
func (c *Comm) Create(ctx context.Context, g Group) (*Comm, error) {
	if err := c.checkMembers(g); err != nil {
		return nil, c.fault(calls.Create.String(), -1, err)
	}
	color, key := g.Color(), g.Index(c.ch.World(c.Rank()))
	if key < 0 {
		color = ^color
	}
	return c.divide(ctx, calls.Create, color, key, func(all []int64) error { return g.Check(c.Group(), c.Rank(), all) })
}

// checkMembers refuses a group with ranks outside c.
func (c *Comm) checkMembers(g Group) error {
	if alien := g.Difference(c.Group()).Size(); alien > 0 {
		return BadArgument("group with %d ranks that are not in %s", alien, c.name)
	}
	return nil
}

// CreateGroup is Create, but collective over the ranks of g alone. Groups that are created at the
// same time need different tags.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	d, err := c.createGroup(ctx, g, tag)
	return d, c.fault("create_group", -1, err)
}

func (c *Comm) createGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	if err := cmp.Or(checkTag(tag), c.checkMembers(g)); err != nil {
		return nil, err
	}
	if g.Index(c.ch.World(c.Rank())) < 0 {
		return nil, BadArgument("group %v without this rank, %d: want its members to call",
			g.Translate(c.Group()), c.Rank())
	}
	mine := c.offer(0, 0)
	members, offered, err := c.maker.Exchange(ctx, g, tag, mine)
	switch {
	case err == nil:
		return c.assemble(c.name+"/create_group", c.rules, g, members, mine), nil
	case offered:
		c.withdraw("create_group", mine, err)
	default:
		c.memory.Give(shmsync.Token(mine.Block))
	}
	return nil, err
}

// offer returns this rank's Member for a new communicator.
func (p *process) offer(color int64, key int) group.Member {
	return group.Member{Color: color, Key: int64(key), Counter: int64(p.e.Live.Counter()), Block: int64(p.memory.Take())}
}

// withdraw notifies the other ranks, to which this rank has sent its offer, that this rank fails
// because of err and is not in the communicator. They may have created the communicator, or may
// still create it.
func (c *Comm) withdraw(kind string, m group.Member, err error) {
	v := liveness.Reason{Rank: c.ch.World(c.Rank()), Cause: fmt.Sprintf("gave up in %s: %v", kind, err)}
	var revoked *RevokedError
	if errors.As(err, &revoked) && revoked.Rank >= 0 {
		v = liveness.Reason{Rank: c.ch.World(revoked.Rank), Cause: revoked.Cause, Died: revoked.Died}
	}
	c.e.Live.Withdraw(uint32(m.Counter), v)
	c.withhold(shmsync.Token(m.Block))
}

// divide makes a communicator of the ranks of each color, none for negative colors. check, if not
// nil, refuses the words of the ranks, on all of them.
func (c *Comm) divide(
	ctx context.Context, kind calls.Kind, color int64, key int, check func(all []int64) error,
) (*Comm, error) {
	mine := c.offer(color, key)
	all, err := c.exchange(ctx, call.Fingerprint{Kind: kind}, mine.Words()...)
	if err == nil && check != nil {
		err = check(all)
	}
	return c.divided(kind, mine, all, err)
}

// divided is the rest of divide, after the exchange or its failure, err.
func (c *Comm) divided(kind calls.Kind, mine group.Member, all []int64, err error) (*Comm, error) {
	switch {
	case err != nil && mine.Color >= 0 && c.Err() != nil: // else nothing was sent
		c.withdraw(call.Fingerprint{Kind: kind}.String(), mine, err)
		return nil, c.fault(kind.String(), -1, err)
	case err != nil || mine.Color < 0:
		c.memory.Give(shmsync.Token(mine.Block))
		return nil, c.fault(kind.String(), -1, err)
	}
	ranks, members := c.Group().Split(all, mine.Color)
	return c.assemble(c.name+"/"+kind.String(), c.rules, ranks, members, mine), nil
}

// assemble returns a new communicator of the ranks of g with the given name and rules. members are
// the messages of these ranks, mine is this rank's message.
func (p *process) assemble(name string, rules *path.Rules, g Group, members []group.Member, mine group.Member) *Comm {
	blocks, counters := make([]shmsync.Token, len(members)), make([]uint32, len(members))
	for i, m := range members {
		blocks[i], counters[i] = shmsync.Token(m.Block), uint32(m.Counter)
	}
	ch := p.e.OpenAs(liveness.NextID(g.Ranks()[0], counters[0]), g.Ranks(), counters)
	d := p.newComm(name, ch, p.rulesFor(rules, g))
	d.setUp(shmsync.Token(mine.Block), blocks)
	return d
}

// rulesFor returns rules for some ranks, which may be on fewer hosts than all.
func (p *process) rulesFor(rules *path.Rules, g Group) *path.Rules {
	hosts := map[int]bool{}
	for _, r := range g.Ranks() {
		hosts[p.boot.Info().NodeIndex(r)] = true
	}
	r := *rules
	r.Hosts = len(hosts)
	return &r
}
