package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// Undefined is the color of a rank that is to be in no new communicator (MPI_UNDEFINED).
const Undefined = -1

// A Group is an ordered set of ranks of a communicator, its parent. Groups are values: making and
// combining them sends nothing.
type Group struct {
	ranks []world.Rank
}

// Group returns all ranks of c, in order.
func (c *Comm) Group() Group {
	g := Group{make([]world.Rank, c.Size())}
	for i := range g.ranks {
		g.ranks[i] = c.ch.World(i)
	}
	return g
}

// Size returns the number of ranks in g.
func (g Group) Size() int { return len(g.ranks) }

// Incl returns the ranks of g with the given numbers, in that order
// (MPI_Group_incl). Numbers outside g are an error.
func (g Group) Incl(ranks ...int) (Group, error) {
	var sub Group
	for _, r := range ranks {
		if r < 0 || r >= len(g.ranks) {
			return Group{}, BadArgument("rank %d of a group: want 0 to %d", r, len(g.ranks)-1)
		}
		if slices.Contains(sub.ranks, g.ranks[r]) {
			return Group{}, BadArgument("rank %d of a group is named twice", r)
		}
		sub.ranks = append(sub.ranks, g.ranks[r])
	}
	return sub, nil
}

// Excl returns g without the ranks with the given numbers (MPI_Group_excl).
func (g Group) Excl(ranks ...int) (Group, error) {
	out, err := g.Incl(ranks...)
	if err != nil {
		return Group{}, err
	}
	return g.Difference(out), nil
}

// Union returns g followed by the ranks that only h has.
func (g Group) Union(h Group) Group {
	return Group{append(slices.Clone(g.ranks), h.Difference(g).ranks...)}
}

// Intersection returns the ranks that both have, in g's order.
func (g Group) Intersection(h Group) Group {
	return g.filter(func(w world.Rank) bool { return slices.Contains(h.ranks, w) })
}

// Difference returns the ranks that only g has, in g's order.
func (g Group) Difference(h Group) Group {
	return g.filter(func(w world.Rank) bool { return !slices.Contains(h.ranks, w) })
}

func (g Group) filter(keep func(world.Rank) bool) Group {
	var sub Group
	for _, w := range g.ranks {
		if keep(w) {
			sub.ranks = append(sub.ranks, w)
		}
	}
	return sub
}

// Translate returns the numbers in h of the ranks of g, -1 for ranks outside h
// (MPI_Group_translate_ranks).
func (g Group) Translate(h Group) []int {
	ranks := make([]int, len(g.ranks))
	for i, w := range g.ranks {
		ranks[i] = slices.Index(h.ranks, w)
	}
	return ranks
}

// Dup returns a communicator of the same ranks whose messages c cannot see.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	return c.divide(ctx, calls.Dup, 0, c.Rank(), nil)
}

// StartDup starts a Dup. When the Request is complete, with err or nil, the caller calls finish
// once, which waits for nothing.
func (c *Comm) StartDup() (r Request, finish func(err error) (*Comm, error)) {
	mine, all := c.offer(), make([]int64, wordsOfMember*c.Size())
	o := new(call.Call).Allgather(mem.Of([]int64{0, int64(c.Rank()), mine.counter, mine.block}), mem.Of(all))
	o.Fingerprint = call.Fingerprint{Kind: calls.Dup}
	return c.Start(o), func(err error) (*Comm, error) {
		return c.divided(calls.Dup, 0, mine, all, err)
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
	if alien := g.Difference(c.Group()).Size(); alien > 0 {
		return nil, c.fault(calls.Create.String(), -1, BadArgument("group with %d ranks that are not in %s", alien, c.name))
	}
	color, key := g.color(), slices.Index(g.ranks, c.ch.World(c.Rank()))
	if key < 0 {
		color = ^color
	}
	return c.divide(ctx, calls.Create, color, key, func(all []int64) error { return c.checkGroups(g, all) })
}

// sizeBits are the bits of a group's size in its color.
const sizeBits = 31

// color returns the color of the ranks of g in Create, a hash of g. A rank that passes g and is not
// in g has the complement of the color, for an empty g Undefined.
func (g Group) color() int64 {
	if g.Size() == 0 {
		return ^Undefined
	}
	return int64(call.DigestOf(g.ranks))<<sizeBits | int64(g.Size())
}

// checkGroups returns an error, on all ranks or on none, unless all ranks of each group in Create
// give the same group. g is this rank's group. all are the words of all ranks.
func (c *Comm) checkGroups(g Group, all []int64) error {
	for _, r := range g.in(c) {
		if theirs := memberOf(all, r); theirs.color != g.color() {
			return fmt.Errorf("%w: rank %d makes a group of %v, but rank %d of others", ErrMismatch, c.Rank(), g.in(c), r)
		}
	}
	given := map[int64]int{}
	for r := range c.Size() {
		given[memberOf(all, r).color]++
	}
	for r := range c.Size() {
		color := memberOf(all, r).color
		color = max(color, ^color)
		if size := int(color & (1<<sizeBits - 1)); given[color] != size {
			return fmt.Errorf("%w: rank %d makes a group of %d ranks, of which %d make the same", ErrMismatch, r, size, given[color])
		}
	}
	return nil
}

// A member is a rank's message to the others for a new communicator. The counter of the first rank
// makes the context id, so no second exchange is needed to agree on an id. block is the shared
// memory that the rank has allocated for the communicator. color and key are Split's. renewals
// counts the renewals of the communicator that Shrink or Restore renews.
type member struct{ color, key, counter, block, renewals int64 }

// wordsOfMember is the number of words of a member that divide exchanges: all but renewals.
const wordsOfMember = 4

// offer returns this rank's member for a new communicator.
func (p *process) offer() member {
	return member{counter: int64(p.e.Live.Counter()), block: int64(p.take())}
}

// withdraw notifies the other ranks, to which this rank has sent its offer, that this rank fails
// because of err and is not in the communicator. They may have created the communicator, or may
// still create it.
func (c *Comm) withdraw(kind string, m member, err error) {
	v := liveness.Reason{Rank: c.ch.World(c.Rank()), Cause: fmt.Sprintf("gave up in %s: %v", kind, err)}
	var revoked *RevokedError
	if errors.As(err, &revoked) && revoked.Rank >= 0 {
		v = liveness.Reason{Rank: c.ch.World(revoked.Rank), Cause: revoked.Cause, Died: revoked.Died}
	}
	c.e.Live.Withdraw(uint32(m.counter), v)
	c.withhold(shmsync.Token(m.block))
}

// divide makes a communicator of the ranks of each color, none for negative colors. check, if not
// nil, refuses the words of the ranks, on all of them.
func (c *Comm) divide(ctx context.Context, kind calls.Kind, color int64, key int, check func(all []int64) error) (*Comm, error) {
	mine := c.offer()
	all, err := c.exchange(ctx, call.Fingerprint{Kind: kind}, color, int64(key), mine.counter, mine.block)
	if err == nil && check != nil {
		err = check(all)
	}
	return c.divided(kind, color, mine, all, err)
}

// divided is the rest of divide, after the exchange or its failure, err.
func (c *Comm) divided(kind calls.Kind, color int64, mine member, all []int64, err error) (*Comm, error) {
	switch {
	case err != nil && color >= 0 && c.Err() != nil: // else nothing was sent
		c.withdraw(call.Fingerprint{Kind: kind}.String(), mine, err)
		return nil, c.fault(kind.String(), -1, err)
	case err != nil || color < 0:
		c.give(shmsync.Token(mine.block))
		return nil, c.fault(kind.String(), -1, err)
	}
	ranks := part(all, color)
	worlds, members := make([]world.Rank, len(ranks)), make([]member, len(ranks))
	for i, r := range ranks {
		worlds[i], members[i] = c.ch.World(r), memberOf(all, r)
	}
	return c.assemble(kind.String(), worlds, members, mine), nil
}

// assemble returns a new communicator of some of c's ranks. members are the messages of these
// ranks, mine is this rank's message.
func (c *Comm) assemble(kind string, ranks []world.Rank, members []member, mine member) *Comm {
	return c.process.assemble(c.name+"/"+kind, c.rules, ranks, members, mine)
}

// assemble returns a new communicator with the given name and rules.
func (p *process) assemble(name string, rules *path.Rules, ranks []world.Rank, members []member, mine member) *Comm {
	blocks, counters := make([]shmsync.Token, len(members)), make([]uint32, len(members))
	for i, m := range members {
		blocks[i], counters[i] = shmsync.Token(m.block), uint32(m.counter)
	}
	d := p.newComm(name, p.e.OpenNew(ranks, counters), p.rulesFor(rules, ranks))
	d.setUp(shmsync.Token(mine.block), blocks)
	return d
}

// rulesFor returns rules for some ranks, which may be on fewer hosts than all.
func (p *process) rulesFor(rules *path.Rules, members []world.Rank) *path.Rules {
	hosts := map[int]bool{}
	for _, r := range members {
		hosts[p.boot.Info().NodeIndex(r)] = true
	}
	r := *rules
	r.Hosts = len(hosts)
	return &r
}

// part returns the ranks with a color, ordered by key and rank.
func part(all []int64, color int64) (ranks []int) {
	for r := range len(all) / wordsOfMember {
		if memberOf(all, r).color == color {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(memberOf(all, a).key, memberOf(all, b).key) })
	return ranks
}

// memberOf returns the words of rank r.
func memberOf(all []int64, r int) member {
	all = all[wordsOfMember*r:]
	return member{color: all[0], key: all[1], counter: all[2], block: all[3]}
}
