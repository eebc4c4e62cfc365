package wire

import (
	"math"
	"slices"

	"gompi/internal/world"
)

// MaxPart bounds a rank's part of a new communicator, in bytes.
const MaxPart = 64

// A VoteKind is the call that a rank votes in.
type VoteKind uint8

// The kinds of votes.
const (
	Agree VoteKind = iota + 1
	Shrink
)

// String returns the name of the call.
func (k VoteKind) String() string {
	if k == Shrink {
		return "shrink"
	}
	return "agree"
}

// Vote is a rank's part in an agreement of the living members of a communicator.
type Vote struct {
	Comm    uint64
	Seq     uint64 // counts the agreements of Comm
	Kind    VoteKind
	Flags   uint64
	Members []Span // world ranks of Comm, in ascending order
	Part    []byte // of a new communicator; opaque
}

// A Span is a number of consecutive ranks.
type Span struct {
	First world.Rank
	Count int
}

// Spans returns the spans of some ranks, each of which is there once.
func Spans(ranks []world.Rank) []Span {
	var spans []Span
	for _, r := range slices.Sorted(slices.Values(ranks)) {
		if last := len(spans) - 1; last >= 0 && spans[last].First+world.Rank(spans[last].Count) == r {
			spans[last].Count++
		} else {
			spans = append(spans, Span{r, 1})
		}
	}
	return spans
}

func (m *Vote) fields(c *Codec) { m.Fields(c) }

// Fields goes over what m is made of.
func (m *Vote) Fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	Uint(c, &m.Seq, math.MaxUint64)
	Uint(c, &m.Kind, uint64(Shrink))
	Uint(c, &m.Flags, math.MaxUint64)
	List(c, &m.Members, MaxRanks, func(s *Span) {
		rank(c, &s.First)
		Int(c, &s.Count, 1, MaxRanks)
	})
	c.Bytes(&m.Part, MaxPart)
}

// Outcome is what the living members of a communicator have agreed on.
type Outcome struct {
	Comm   uint64
	Seq    uint64
	Flags  uint64       // the bitwise AND of those of the living
	Living []Voter      // in ascending order
	Dead   []world.Rank // members that ended, but not well, in ascending order
	Differ string       // why the calls of the members are not one agreement, "" if they are
}

// A Voter is a member that lives.
type Voter struct {
	Rank world.Rank
	Part []byte
}

func (m *Outcome) fields(c *Codec) { m.Fields(c) }

// Fields goes over what m is made of.
func (m *Outcome) Fields(c *Codec) {
	Uint(c, &m.Comm, math.MaxUint64)
	Uint(c, &m.Seq, math.MaxUint64)
	Uint(c, &m.Flags, math.MaxUint64)
	List(c, &m.Living, MaxRanks, func(v *Voter) {
		rank(c, &v.Rank)
		c.Bytes(&v.Part, MaxPart)
	})
	List(c, &m.Dead, MaxRanks, func(r *world.Rank) { rank(c, r) })
	c.String(&m.Differ, MaxText)
}

// Clone returns a copy that shares no memory with m.
func (m *Outcome) Clone() *Outcome {
	o := *m
	o.Living, o.Dead = slices.Clone(m.Living), slices.Clone(m.Dead)
	for i := range o.Living {
		o.Living[i].Part = slices.Clone(o.Living[i].Part)
	}
	return &o
}
