// Package agree decides what the living members of a communicator agree on. One Table, at the
// launcher, gets the votes of all ranks and the news of every end, in one order. So what it decides
// is what happened: no rank has to guess whether another lives.
//
// An agreement is decided when every member has voted or has ended. A member that voted and then
// ended counts as ended.
package agree

import (
	"fmt"
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

// A Table holds the agreements that are not decided. The zero Table is empty. It is not for
// concurrent use.
type Table struct {
	ended map[world.Rank]bool // whether it died
	open  map[key]*agreement
}

// A key names an agreement: the communicator, and the number of the call on it.
type key struct{ comm, seq uint64 }

type agreement struct {
	first   *wire.Vote
	by      world.Rank // who sent first
	members []world.Rank
	votes   map[world.Rank]*wire.Vote
	differ  string
}

// A Decision is an outcome, and the kind of call that it ends.
type Decision struct {
	Kind wire.VoteKind
	*wire.Outcome
}

// Vote takes the vote of a rank, which the Table keeps. It returns the decision that this makes,
// nil if there is none yet. A vote that cannot be is an error, and does not count: of a rank that
// is no member, or has voted already.
func (t *Table) Vote(rank world.Rank, v *wire.Vote) (*Decision, error) {
	k := key{v.Comm, v.Seq}
	a := t.open[k]
	if a == nil {
		a = &agreement{first: v, by: rank, members: ranks(v.Members), votes: map[world.Rank]*wire.Vote{}}
	}
	switch {
	case t.has(rank):
		return nil, nil
	case !slices.Contains(a.members, rank):
		return nil, fmt.Errorf("rank %d votes in %v %d of communicator %d, whose members are %v", rank, v.Kind, v.Seq, v.Comm, a.members)
	case a.votes[rank] != nil:
		return nil, fmt.Errorf("rank %d votes twice in %v %d of communicator %d", rank, v.Kind, v.Seq, v.Comm)
	case v.Kind != a.first.Kind && a.differ == "":
		a.differ = fmt.Sprintf("rank %d called %v, but rank %d called %v", a.by, a.first.Kind, rank, v.Kind)
	}
	if t.open == nil {
		t.open = map[key]*agreement{}
	}
	t.open[k] = a
	a.votes[rank] = v
	return t.decide(k), nil
}

// ranks returns the ranks of spans.
func ranks(spans []wire.Span) []world.Rank {
	var all []world.Rank
	for _, s := range spans {
		for i := range s.Count {
			all = append(all, s.First+world.Rank(i))
		}
	}
	return all
}

func (t *Table) has(rank world.Rank) bool {
	_, ended := t.ended[rank]
	return ended
}

// Ended notes that a rank has ended, and whether it died. It returns the decisions that this makes,
// in no particular order.
func (t *Table) Ended(rank world.Rank, died bool) []*Decision {
	if t.ended == nil {
		t.ended = map[world.Rank]bool{}
	}
	t.ended[rank] = died
	var made []*Decision
	for k := range t.open {
		if d := t.decide(k); d != nil {
			made = append(made, d)
		}
	}
	return made
}

// decide decides an agreement if every member has voted or ended, and forgets it.
func (t *Table) decide(k key) *Decision {
	a := t.open[k]
	o := &wire.Outcome{Comm: k.comm, Seq: k.seq, Flags: ^uint64(0), Differ: a.differ}
	for _, r := range a.members {
		died, ended := t.ended[r]
		v := a.votes[r]
		switch {
		case died:
			o.Dead = append(o.Dead, r)
		case ended:
		case v == nil:
			return nil
		default:
			o.Flags &= v.Flags
			o.Living = append(o.Living, wire.Voter{Rank: r, Part: v.Part})
		}
	}
	delete(t.open, k)
	return &Decision{a.first.Kind, o}
}
