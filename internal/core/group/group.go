// Package group has groups of ranks, and the agreement of a group's ranks to be a communicator.
// Each rank that is to be in a new communicator sends the others a Member: in an exchange of all
// ranks of the communicator before (Split, Check), in messages of the group's ranks alone (Maker),
// or in a vote of the living ranks (Renew). Package core makes the communicator.
package group

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/world"
)

// A Group is an ordered set of ranks of a communicator, its parent. Groups are values: making and
// combining them sends nothing.
type Group struct {
	ranks []world.Rank
}

// Of returns all ranks of c, in order.
func Of(c *liveness.Comm) Group {
	g := Group{make([]world.Rank, c.Size())}
	for i := range g.ranks {
		g.ranks[i] = c.World(i)
	}
	return g
}

// OfRanks returns the Group of the given ranks, which it keeps.
func OfRanks(ranks []world.Rank) Group { return Group{ranks} }

// Ranks returns the ranks of g, which are not to be changed.
func (g Group) Ranks() []world.Rank { return g.ranks }

// Size returns the number of ranks in g.
func (g Group) Size() int { return len(g.ranks) }

// Index returns the number in g of a rank, -1 for ranks outside g.
func (g Group) Index(rank world.Rank) int { return slices.Index(g.ranks, rank) }

// Incl returns the ranks of g with the given numbers, in that order
// (MPI_Group_incl). Numbers outside g are an error.
func (g Group) Incl(ranks ...int) (Group, error) {
	var sub Group
	for _, r := range ranks {
		if r < 0 || r >= len(g.ranks) {
			return Group{}, call.BadArgument("rank %d of a group: want 0 to %d", r, len(g.ranks)-1)
		}
		if slices.Contains(sub.ranks, g.ranks[r]) {
			return Group{}, call.BadArgument("rank %d of a group is named twice", r)
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
		ranks[i] = h.Index(w)
	}
	return ranks
}

// A Member is a rank's message to the others for a new communicator. The Counter of the first rank
// makes the context id, so no second exchange is needed to agree on an id. Block is the shared
// memory that the rank has allocated for the communicator. Color and Key are Split's. Renewals
// counts the renewals of the communicator that Shrink or Restore renews.
type Member struct{ Color, Key, Counter, Block, Renewals int64 }

// MemberWords is the number of words of a Member that all ranks of the parent exchange.
const MemberWords = 4

// Words returns these words: all but Renewals.
func (m Member) Words() []int64 { return []int64{m.Color, m.Key, m.Counter, m.Block} }

// memberOf returns the Member of rank r, from the words of all ranks.
func memberOf(all []int64, r int) Member {
	all = all[MemberWords*r:]
	return Member{Color: all[0], Key: all[1], Counter: all[2], Block: all[3]}
}

// Split returns the ranks with a color, ordered by key and rank, and the Member of each. all are
// the words of all ranks of g.
func (g Group) Split(all []int64, color int64) (Group, []Member) {
	var ranks []int
	for r := range g.ranks {
		if memberOf(all, r).Color == color {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(memberOf(all, a).Key, memberOf(all, b).Key) })
	sub, members := Group{make([]world.Rank, len(ranks))}, make([]Member, len(ranks))
	for i, r := range ranks {
		sub.ranks[i], members[i] = g.ranks[r], memberOf(all, r)
	}
	return sub, members
}

// sizeBits are the bits of a group's size in its color.
const sizeBits = 31

// Color returns the color of the ranks of g in Create, a hash of g. A rank that passes g and is not
// in g has the complement of the color, for an empty g -1.
func (g Group) Color() int64 {
	if g.Size() == 0 {
		return 0
	}
	return int64(call.DigestOf(g.ranks))<<sizeBits | int64(g.Size())
}

// Check returns an error, on all ranks or on none, unless all ranks of each group in Create give
// the same group. g is the group of rank me of parent. all are the words of all its ranks.
func (g Group) Check(parent Group, me int, all []int64) error {
	in := g.Translate(parent)
	for _, r := range in {
		if memberOf(all, r).Color != g.Color() {
			return fmt.Errorf("%w: rank %d makes a group of %v, but rank %d a different one",
				liveness.ErrMismatch, me, in, r)
		}
	}
	given := map[int64]int{}
	for r := range parent.ranks {
		given[memberOf(all, r).Color]++
	}
	for r := range parent.ranks {
		color := memberOf(all, r).Color
		color = max(color, ^color)
		if size := int(color & (1<<sizeBits - 1)); given[color] != size {
			return fmt.Errorf("%w: rank %d makes a group of %d ranks, of which %d make the same",
				liveness.ErrMismatch, r, size, given[color])
		}
	}
	return nil
}

// partSize is the length of an encoded Member, which lacks Color and Key: only Split uses them.
const partSize = 3 * 8

// Encode returns m in bytes.
func (m Member) Encode() []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, [...]int64{m.Counter, m.Block, m.Renewals}) // never fails
	return b
}

// decodeMember decodes the result of Encode.
func decodeMember(b []byte) Member {
	var words [3]int64
	_, _ = binary.Decode(b, binary.LittleEndian, &words) // as Encode
	return Member{Counter: words[0], Block: words[1], Renewals: words[2]}
}

// Renew returns the ranks of the communicator in the place of g's, after a vote, and their Members:
// the living ranks in g's order, with replacements in the places of the dead.
func (g Group) Renew(o *wire.Outcome) (Group, []Member, error) {
	by := map[world.Rank]world.Rank{}
	for _, r := range o.Replaced {
		by[r.Dead] = r.By
	}
	at := make(map[world.Rank]Member, len(o.Living))
	for _, v := range o.Living {
		if len(v.Part) != partSize {
			return Group{}, nil, fmt.Errorf("rank %d sends %d bytes: want %d; are all ranks of one gompi version?",
				v.Rank, len(v.Part), partSize)
		}
		at[v.Rank] = decodeMember(v.Part)
	}
	var living Group
	var members []Member
	for _, r := range g.ranks {
		if late, replaced := by[r]; replaced {
			r = late
		}
		if m, lives := at[r]; lives {
			living.ranks, members = append(living.ranks, r), append(members, m)
		}
	}
	return living, members, nil
}
