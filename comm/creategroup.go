package comm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/message"
	"gompi/internal/world"
)

// CreateGroup returns a communicator of the ranks of g, which are ranks of c, in the order of g
// (MPI_Comm_create_group). It is collective over the ranks of g alone: all of them call it with the
// same g and tag, and the others may do what they like. Groups that are made at the same time from
// one communicator, by several goroutines or with some ranks in common, differ in their tags.
//
// One rank, that with the lowest number in the world, receives a message of 8 bytes for each rank
// from each of the others, and then sends them one of 16 bytes for each rank. Groups that differ
// are an ErrMismatch if the ranks that call take the same one for that lowest; else they wait for
// each other until ctx ends.
//
// If it fails after a message was sent, so do all that wait for this rank, and all later calls of
// CreateGroup on c. Members that have got their communicator already get ErrRevoked from it. c
// itself stays whole.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	d, err := c.createGroup(ctx, g, tag)
	return d, c.fault("create_group", -1, err)
}

func (c *Comm) createGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	if err := checkTag(tag); err != nil {
		return nil, err
	}
	if alien := g.Difference(c.Group()).Size(); alien > 0 {
		return nil, badArgument("group with %d ranks that are not in %s", alien, c.name)
	}
	if !slices.Contains(g.ranks, c.ch.World(c.Rank())) {
		return nil, badArgument("group %v without this rank, %d: want its members to call", g.in(c), c.Rank())
	}
	m, err := c.maker.of(c)
	if err != nil {
		return nil, err
	}
	mine := c.offer()
	members, err := m.exchangeMembers(ctx, g, tag, mine)
	if err != nil {
		m.ch.Break(fmt.Sprintf("create_group of %v with tag %d failed: %v", g.in(c), tag, err))
		c.withdraw("create_group", mine, err)
		return nil, err
	}
	return c.assemble("create_group", slices.Clone(g.ranks), members, mine), nil
}

// in returns the numbers in c of the ranks of g.
func (g Group) in(c *Comm) []int { return g.Translate(c.Group()) }

// A maker is how ranks of a communicator make groups: by messages on a communicator of their own,
// which every rank opens when it makes the first group, and closes with the one it belongs to.
type maker struct {
	mu     sync.Mutex
	c      *Comm
	closed bool
}

// of returns the communicator for the messages.
func (m *maker) of(parent *Comm) (*Comm, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if m.c == nil {
		m.c = parent.newComm(parent.name+"/create_group", parent.openMaker(), parent.rules)
	}
	return m.c, m.c.Err()
}

func (c *Comm) openMaker() *message.Channel {
	return c.e.Open(liveness.MakerID(c.ch.ID), c.Group().ranks)
}

func (m *maker) close(ctx context.Context, parent *Comm) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	switch {
	case m.c != nil:
		_ = m.c.Close(ctx) // its errors are those of calls that have failed
	case parent.Size() > 1: // ranks that wait for this one are notified that it closes
		parent.openMaker().Close()
	}
}

// A member sends two words, its counter and its block, and the group as it was given.
const wordsOfCall = 2

// exchangeMembers exchanges the members of g, and returns them in the order of its ranks.
func (c *Comm) exchangeMembers(ctx context.Context, g Group, tag int, mine member) ([]member, error) {
	first := slices.Index(c.Group().ranks, slices.Min(g.ranks))
	words := []int64{mine.counter, mine.block}
	if c.Rank() != first {
		for _, r := range g.ranks {
			words = append(words, int64(r))
		}
		if err := c.Send(ctx, first, tag, Of(words)); err != nil {
			return nil, err
		}
		words = make([]int64, wordsOfCall*g.Size())
		_, err := c.Recv(ctx, first, tag, Of(words))
		return membersOf(words), err
	}
	all := make([]int64, 0, wordsOfCall*g.Size())
	for _, r := range g.in(c) {
		if r == first {
			all = append(all, words...)
			continue
		}
		theirs, err := c.receiveGroup(ctx, g, tag, r)
		if err != nil {
			return nil, err
		}
		all = append(all, theirs...)
	}
	for _, r := range g.in(c) {
		if r == first {
			continue
		}
		if err := c.Send(ctx, r, tag, Of(all)); err != nil {
			return nil, err
		}
	}
	return membersOf(all), nil
}

// receiveGroup receives the words of rank r.
func (c *Comm) receiveGroup(ctx context.Context, g Group, tag, r int) ([]int64, error) {
	st, err := c.Probe(ctx, r, tag)
	if err != nil {
		return nil, err
	}
	words := make([]int64, st.Count())
	if _, err := c.Recv(ctx, r, tag, Of(words)); err != nil {
		return nil, err
	}
	var theirs Group
	for _, w := range words[wordsOfCall:] {
		theirs.ranks = append(theirs.ranks, world.Rank(w))
	}
	if !slices.Equal(theirs.ranks, g.ranks) {
		return nil, fmt.Errorf("%w: rank %d makes a group of %v, but rank %d of %v", ErrMismatch, c.Rank(), g.in(c), r, theirs.in(c))
	}
	return words[:wordsOfCall], nil
}

func membersOf(words []int64) []member {
	members := make([]member, len(words)/wordsOfCall)
	for i := range members {
		members[i] = member{counter: words[wordsOfCall*i], block: words[wordsOfCall*i+1]}
	}
	return members
}
