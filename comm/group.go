package comm

import (
	"context"

	"gompi/internal/core"
)

// Undefined is the color of a rank that joins no new communicator (MPI_UNDEFINED).
const Undefined = core.Undefined

// A Group is an ordered set of ranks of one communicator, its parent. It is a value: making and
// combining groups sends nothing.
type Group core.Group

// Group returns all ranks of c, in order.
func (c *Comm) Group() Group { return Group(c.core().Group()) }

// Size returns the number of ranks in g.
func (g Group) Size() int { return core.Group(g).Size() }

// Incl returns the ranks of g with the given numbers, in that order
// (MPI_Group_incl). Numbers outside g are an error.
func (g Group) Incl(ranks ...int) (Group, error) {
	sub, err := core.Group(g).Incl(ranks...)
	return Group(sub), err
}

// Excl returns g without the ranks with the given numbers (MPI_Group_excl).
func (g Group) Excl(ranks ...int) (Group, error) {
	sub, err := core.Group(g).Excl(ranks...)
	return Group(sub), err
}

// Union returns g followed by the ranks that only h has.
func (g Group) Union(h Group) Group {
	return Group(core.Group(g).Union(core.Group(h)))
}

// Intersection returns the ranks that both groups have, in g's order.
func (g Group) Intersection(h Group) Group {
	return Group(core.Group(g).Intersection(core.Group(h)))
}

// Difference returns the ranks that only g has, in g's order.
func (g Group) Difference(h Group) Group {
	return Group(core.Group(g).Difference(core.Group(h)))
}

// Translate returns the numbers in h of the ranks of g, -1 for ranks that are not in h
// (MPI_Group_translate_ranks).
func (g Group) Translate(h Group) []int { return core.Group(g).Translate(core.Group(h)) }

// Dup returns a communicator of the same ranks whose messages c cannot see (MPI_Comm_dup). It is
// collective.
//
// If Dup, Split, SplitHost or Create fails on a rank after others have received its part, the call
// fails on all ranks, or the new communicator breaks for the ranks that have got it, with the
// reason (ErrRevoked).
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return made(c.core().Dup(ctx)) }

// Split returns, on each rank, a communicator of the ranks that gave the same color, numbered by
// key and, for equal keys, by their number in c (MPI_Comm_split). A rank with color Undefined gets
// nil. Split is collective over all of c.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	return made(c.core().Split(ctx, color, key))
}

// SplitHost is Split by host, in rank order: the ranks of the result share
// memory (MPI_Comm_split_type with MPI_COMM_TYPE_SHARED).
func (c *Comm) SplitHost(ctx context.Context) (*Comm, error) { return made(c.core().SplitHost(ctx)) }

// Create returns a communicator of the ranks of g, which are ranks of c, in the order of g
// (MPI_Comm_create). A rank that is not in its own g gets nil. Create is collective over all of c.
// Ranks may pass different groups, and so make several communicators at once, if all ranks of each
// group pass that same group. Otherwise all get ErrMismatch, and nothing breaks.
func (c *Comm) Create(ctx context.Context, g Group) (*Comm, error) {
	return made(c.core().Create(ctx, core.Group(g)))
}

// CreateGroup returns a communicator of the ranks of g, which are ranks of c, in the order of g
// (MPI_Comm_create_group). CreateGroup is collective over the ranks of g alone: all of them pass
// the same g and tag, and the other ranks need do nothing. Groups made at the same time from one
// communicator, by several goroutines or with common ranks, need different tags.
//
// One rank, the lowest in the world, receives a message of 4 bytes for each rank from each of the
// others, and then sends them one of 24 bytes for each rank. Groups that differ are an ErrMismatch
// if the calling ranks agree on the lowest rank; otherwise they wait for each other until ctx ends.
//
// A failure concerns this group alone, and CreateGroup may be called again, with the same tag, too.
// If ctx ends before a message has matched, the other ranks wait on, until this rank calls again or
// their contexts end. If ctx ends later, the call ends on the members that the lowest rank has
// heard from, and members that have their communicator get ErrRevoked from it.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	return made(c.core().CreateGroup(ctx, core.Group(g), tag))
}
