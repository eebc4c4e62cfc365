package wire

import (
	"math"
	"slices"

	"gompi/internal/world"
)

// MaxPart bounds a rank's part of a new communicator, in bytes.
const MaxPart = 64

// A VoteKind is the call for which a rank votes.
type VoteKind uint8

// The kinds of votes.
const (
	Agree VoteKind = iota + 1
	Shrink
	Restore
)

// String returns the name of the call.
func (k VoteKind) String() string {
	switch k {
	case Shrink:
		return "shrink"
	case Restore:
		return "restore"
	}
	return "agree"
}

// Vote is a rank's part in an agreement of the living members of a communicator and of replacements
// for the dead.
type Vote struct {
	Comm    uint64
	Seq     uint64 // counts the agreements of Comm
	Kind    VoteKind
	Flags   uint64
	Members []Span // world ranks of Comm, in its order
	Part    []byte // of a new communicator; opaque
}

// A Span is a number of consecutive ranks.
type Span struct {
	First world.Rank
	Count int
}

// Spans returns the spans of some ranks, in their order.
func Spans(ranks []world.Rank) []Span {
	var spans []Span
	for _, r := range ranks {
		if last := len(spans) - 1; last >= 0 && spans[last].First+world.Rank(spans[last].Count) == r {
			spans[last].Count++
		} else {
			spans = append(spans, Span{r, 1})
		}
	}
	return spans
}

// Ranks returns the ranks of spans, in their order.
func Ranks(spans []Span) []world.Rank {
	var ranks []world.Rank
	for _, s := range spans {
		for i := range s.Count {
			ranks = append(ranks, s.First+world.Rank(i))
		}
	}
	return ranks
}

// spans codes spans of at most MaxRanks ranks in all.
func spans(c *Codec, v *[]Span) {
	left := int64(MaxRanks)
	List(c, v, MaxRanks, func(s *Span) {
		rank(c, &s.First)
		Int(c, &s.Count, 1, left)
		left -= int64(s.Count)
	})
}

func (m *Vote) fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	Uint(c, &m.Seq, math.MaxUint64)
	Uint(c, &m.Kind, uint64(Restore))
	Uint(c, &m.Flags, math.MaxUint64)
	spans(c, &m.Members)
	c.Bytes(&m.Part, MaxPart)
}

// Outcome is the result of an agreement of the living members of a communicator.
type Outcome struct {
	Comm     uint64
	Seq      uint64
	Flags    uint64        // bitwise AND of the flags of the living
	Living   []Voter       // members in the order of Comm, then replacements
	Dead     []world.Rank  // members that ended, but not well, in the order of Comm
	Replaced []Replacement // of Dead, if all were replaced
	Differ   string        // how the calls of the members differ, "" if they agree
	Failed   string        // why members could not be replaced, "" without failure
}

// A Voter is a living member or a replacement.
type Voter struct {
	Rank world.Rank
	Part []byte
}

// A Replacement is a rank in the place of a dead rank.
type Replacement struct {
	Dead, By world.Rank
	Card     []byte // of By
}

func (m *Outcome) fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	Uint(c, &m.Seq, math.MaxUint64)
	Uint(c, &m.Flags, math.MaxUint64)
	List(c, &m.Living, MaxRanks, func(v *Voter) {
		rank(c, &v.Rank)
		c.Bytes(&v.Part, MaxPart)
	})
	List(c, &m.Dead, MaxRanks, func(r *world.Rank) { rank(c, r) })
	List(c, &m.Replaced, MaxRanks, func(r *Replacement) {
		rank(c, &r.Dead)
		rank(c, &r.By)
		c.Bytes(&r.Card, MaxCard)
	})
	c.Prose(&m.Differ, MaxText)
	c.Prose(&m.Failed, MaxText)
}

// Clone returns a copy that shares no memory with m.
func (m *Outcome) Clone() *Outcome {
	o := *m
	o.Living, o.Dead, o.Replaced = slices.Clone(m.Living), slices.Clone(m.Dead), slices.Clone(m.Replaced)
	for i := range o.Living {
		o.Living[i].Part = slices.Clone(o.Living[i].Part)
	}
	for i := range o.Replaced {
		o.Replaced[i].Card = slices.Clone(o.Replaced[i].Card)
	}
	return &o
}

// Invite names to a replacement the agreement in which it votes first.
type Invite struct {
	Comm    uint64
	Seq     uint64
	Members []Span // of Comm, as in the votes
}

// Fields codes the fields of m.
func (m *Invite) Fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	Uint(c, &m.Seq, math.MaxUint64)
	spans(c, &m.Members)
}
