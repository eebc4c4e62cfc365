package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// CreateGroup is Create, but collective over the ranks of g alone. Groups that are created at the
// same time need different tags.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	d, err := c.createGroup(ctx, g, tag)
	return d, c.fault("create_group", -1, err)
}

func (c *Comm) createGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	if err := checkTag(tag); err != nil {
		return nil, err
	}
	if alien := g.Difference(c.Group()).Size(); alien > 0 {
		return nil, BadArgument("group with %d ranks that are not in %s", alien, c.name)
	}
	if !slices.Contains(g.ranks, c.ch.World(c.Rank())) {
		return nil, BadArgument("group %v without this rank, %d: want its members to call", g.in(c), c.Rank())
	}
	m, err := c.maker.of(c)
	if err != nil {
		return nil, err
	}
	mine := c.offer()
	members, offered, err := m.exchangeMembers(ctx, g, tag, mine)
	switch {
	case err == nil:
		return c.assemble("create_group", slices.Clone(g.ranks), members, mine), nil
	case offered:
		c.withdraw("create_group", mine, err)
	default:
		c.give(shmsync.Token(mine.block))
	}
	return nil, err
}

// in returns the numbers in c of the ranks of g.
func (g Group) in(c *Comm) []int { return g.Translate(c.Group()) }

// A maker creates communicators of groups. It sends messages on a communicator of its own, which a
// rank opens for its first group and closes with the parent.
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
		_ = m.c.Close(ctx) // m.c's errors are errors of failed calls
	case parent.Size() > 1: // ranks that wait for this rank are notified that c closes
		parent.openMaker().Close()
	}
}

// A member sends two words, its counter and its block, and the group as given by the caller. Each
// such message gets an answer: the outcome and, if the group is created, the words of all its
// members, or else the reason as text, a byte in a word.
const (
	wordsOfCall   = 2
	maxReasonText = 256
)

// The outcomes.
const (
	groupMade int64 = iota
	groupGivenUp
	groupMismatch
)

// exchangeMembers exchanges the members of g, and returns them in the order of its ranks. After a
// failure, offered reports whether other ranks have got mine, or may get it.
func (c *Comm) exchangeMembers(ctx context.Context, g Group, tag int, mine member) (all []member, offered bool, err error) {
	first := slices.Index(c.Group().ranks, slices.Min(g.ranks))
	if c.Rank() == first {
		return c.gatherGroup(ctx, g, tag, mine)
	}
	return c.joinGroup(ctx, g, tag, first, mine)
}

// joinGroup sends mine to rank first, and receives the members. The send is synchronous: a message
// left behind would match a receive of a later call. The receive of the answer stays posted if ctx
// ends, for the same reason.
func (c *Comm) joinGroup(ctx context.Context, g Group, tag, first int, mine member) ([]member, bool, error) {
	words := []int64{mine.counter, mine.block}
	for _, r := range g.ranks {
		words = append(words, int64(r))
	}
	if err := c.Ssend(ctx, first, tag, mem.Of(words)); err != nil {
		return nil, false, err
	}
	answer := make([]int64, 1+max(wordsOfCall*g.Size(), maxReasonText))
	st, err := c.Irecv(first, tag, mem.Of(answer)).Wait(ctx)
	if err != nil {
		return nil, true, err
	}
	answer = answer[:st.Count()]
	if answer[0] == groupMade {
		return membersOf(answer[1:]), true, nil
	}
	text := make([]byte, 0, maxReasonText)
	for _, b := range answer[1:] {
		text = append(text, byte(b))
	}
	if answer[0] == groupMismatch {
		return nil, true, fmt.Errorf("%w: %s", ErrMismatch, text)
	}
	return nil, true, &RevokedError{Rank: first, Host: c.Host(first), Cause: string(text)}
}

// gatherGroup receives the members of g, and sends all of them to each.
func (c *Comm) gatherGroup(ctx context.Context, g Group, tag int, mine member) ([]member, bool, error) {
	answer := []int64{groupMade}
	var heard []int
	var differ string
	for _, r := range g.in(c) {
		if r == c.Rank() {
			answer = append(answer, mine.counter, mine.block)
			continue
		}
		theirs, why, err := c.receiveGroup(ctx, g, tag, r)
		if err != nil {
			why = fmt.Sprintf("gave up in create_group of %v with tag %d: %v", g.in(c), tag, err)
			_ = c.answer(ctx, heard, tag, failure(groupGivenUp, why))
			return nil, false, err
		}
		heard, differ = append(heard, r), cmp.Or(differ, why)
		answer = append(answer, theirs...)
	}
	if differ != "" {
		_ = c.answer(ctx, heard, tag, failure(groupMismatch, differ))
		return nil, false, fmt.Errorf("%w: %s", ErrMismatch, differ)
	}
	err := c.answer(ctx, heard, tag, answer)
	return membersOf(answer[1:]), true, err
}

// answer sends words to ranks. If ctx ends, the messages still leave.
func (c *Comm) answer(ctx context.Context, ranks []int, tag int, words []int64) error {
	var rs []Request
	for _, r := range ranks {
		rs = append(rs, c.Isend(r, tag, mem.Of(words)))
	}
	return WaitAll(ctx, rs)
}

// failure encodes an outcome and its reason as an answer.
func failure(outcome int64, why string) []int64 {
	words := []int64{outcome}
	for _, b := range []byte(why[:min(len(why), maxReasonText)]) {
		words = append(words, int64(b))
	}
	return words
}

// receiveGroup receives the words of rank r, and how its group differs from g, "" if equal. A
// matched message is received even if ctx ends, so that its sender gets an answer.
func (c *Comm) receiveGroup(ctx context.Context, g Group, tag, r int) (words []int64, differs string, err error) {
	m, err := c.Mprobe(ctx, r, tag)
	if err != nil {
		return nil, "", err
	}
	words = make([]int64, m.Count())
	if _, err := m.Recv(context.WithoutCancel(ctx), mem.Of(words)); err != nil {
		return nil, "", err
	}
	var theirs Group
	for _, w := range words[wordsOfCall:] {
		theirs.ranks = append(theirs.ranks, world.Rank(w))
	}
	if !slices.Equal(theirs.ranks, g.ranks) {
		differs = fmt.Sprintf("rank %d makes a group of %v, but rank %d of %v", c.Rank(), g.in(c), r, theirs.in(c))
	}
	return words[:wordsOfCall], differs, nil
}

func membersOf(words []int64) []member {
	members := make([]member, len(words)/wordsOfCall)
	for i := range members {
		members[i] = member{counter: words[wordsOfCall*i], block: words[wordsOfCall*i+1]}
	}
	return members
}
