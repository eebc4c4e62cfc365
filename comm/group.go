package comm

import (
	"context"

	"gompi/internal/core"
)

// Undefined is the color of a rank that is to be in no new communicator (MPI_UNDEFINED).
const Undefined = core.Undefined

// A Group is an ordered set of ranks of one communicator, its parent. It is a
// value: making and combining groups sends nothing.
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

// Union returns g followed by what only h has.
func (g Group) Union(h Group) Group {
	return Group(core.Group(g).Union(core.Group(h)))
}

// Intersection returns what both have, in g's order.
func (g Group) Intersection(h Group) Group {
	return Group(core.Group(g).Intersection(core.Group(h)))
}

// Difference returns what only g has, in g's order.
func (g Group) Difference(h Group) Group {
	return Group(core.Group(g).Difference(core.Group(h)))
}

// Translate returns the numbers in h of the ranks of g, -1 for those not in h
// (MPI_Group_translate_ranks).
func (g Group) Translate(h Group) []int { return core.Group(g).Translate(core.Group(h)) }

// Dup returns a communicator of the same ranks whose messages c cannot see
// (MPI_Comm_dup). It is collective.
//
// If Dup, Split, SplitHost or Create fails on a rank after others have received its part, it fails
// on all, or the communicator of those that have got one breaks, and gives the reason (ErrRevoked).
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return made(c.core().Dup(ctx)) }

// Split returns, on each rank, a communicator of the ranks that gave the same
// color, numbered by key and, where keys are equal, by their number in c
// (MPI_Comm_split). A rank with color Undefined gets nil. It is collective over
// all of c.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	return made(c.core().Split(ctx, color, key))
}

// SplitHost is Split by host, in rank order: the ranks of the result share
// memory (MPI_Comm_split_type with MPI_COMM_TYPE_SHARED).
func (c *Comm) SplitHost(ctx context.Context) (*Comm, error) { return made(c.core().SplitHost(ctx)) }

// Create returns a communicator of the ranks of g, which are ranks of c, in the order of g, and nil
// on a rank that is not in the g it gives (MPI_Comm_create). It is collective over all of c. Ranks
// may give different groups, and so make several communicators at once, if all ranks of each group
// give that same one. Else all get ErrMismatch, and nothing breaks.
func (c *Comm) Create(ctx context.Context, g Group) (*Comm, error) {
	return made(c.core().Create(ctx, core.Group(g)))
}

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
// A failure concerns this group alone, and CreateGroup may be called again, with the same tag, too.
// If ctx ends before a message has matched, the other ranks wait on, until this rank calls again or
// their contexts end. Later it ends the call of the members that the lowest rank has heard from,
// and members that have got their communicator get ErrRevoked from it.
func (c *Comm) CreateGroup(ctx context.Context, g Group, tag int) (*Comm, error) {
	return made(c.core().CreateGroup(ctx, core.Group(g), tag))
}
