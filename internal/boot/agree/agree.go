// Package agree decides the agreements of the living members of a communicator. One Table, at the
// launcher, gets the votes of all ranks and the reports of all ends, in one order. That order is
// the truth: no rank has to guess whether another lives.
//
// An agreement is decided when every member has voted or ended. A member that voted and then ended
// counts as ended. In a Restore, each dead member also needs a replacement that has voted: Wanted
// returns the members to be replaced, and Assign or Refuse answers.
package agree

import (
	"fmt"
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

// A Table holds the undecided agreements. Its zero value is empty. A Table is not for concurrent
// use.
type Table struct {
	Ranks int // largest number of ranks of the job, with all replacements; set before the first vote

	ended    map[world.Rank]bool // for ended ranks, whether they died
	open     map[key]*agreement
	assigned map[world.Rank]key // replacements, until they are members of a communicator
}

// A key names an agreement: the communicator, and the number of the call on it.
type key struct{ comm, seq uint64 }

type agreement struct {
	first   *wire.Vote
	by      world.Rank // rank of the first vote
	members []world.Rank
	votes   map[world.Rank]*wire.Vote
	newest  map[world.Rank]world.Rank // the newest replacement, by dead member
	differ  string
	failed  string
}

// A Decision is an outcome and the kind of the decided call. The cards of replacements are missing.
type Decision struct {
	Kind wire.VoteKind
	*wire.Outcome
}

// A Want is a dead member to be replaced.
type Want struct {
	Dead   world.Rank
	Invite wire.Invite
}

func (w *Want) key() key { return key{w.Invite.Comm, w.Invite.Seq} }

// Vote takes the vote of a rank, which the Table keeps, and returns the completed decision, or nil.
// A vote is invalid if its rank is no member or has voted already, or if the vote names members
// that the job does not have. An invalid vote returns an error and does not count. A failed
// decision then goes to its sender alone, so that the sender does not wait. The decision is nil if
// the sender has another vote pending or is no rank of the job.
func (t *Table) Vote(rank world.Rank, v *wire.Vote) (*Decision, error) {
	k := key{v.Comm, v.Seq}
	a := t.open[k]
	_, replaces := t.assigned[rank]
	alien, has := t.alien(v.Members)
	switch {
	case int(rank) >= t.Ranks:
		return nil, fmt.Errorf("rank %d votes: want one of 0 to %d", rank, t.Ranks-1)
	case t.has(rank):
		return nil, nil
	case has:
		return refusal(rank, v, "it names rank %d as a member: want ranks 0 to %d", alien, t.Ranks-1)
	case a == nil && replaces:
		return failed(rank, v, "the others have not waited for it"), nil
	case a == nil:
		a = &agreement{first: v, by: rank, members: wire.Ranks(v.Members), votes: map[world.Rank]*wire.Vote{},
			newest: map[world.Rank]world.Rank{}}
	}
	switch {
	case !replaces && !slices.Contains(a.members, rank):
		return refusal(rank, v, "its members are %v", a.members)
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

// alien returns the first member that the job does not have, if there is such a member.
func (t *Table) alien(members []wire.Span) (rank world.Rank, has bool) {
	for _, s := range members {
		if end := int(s.First) + s.Count; end > t.Ranks {
			return world.Rank(max(int(s.First), t.Ranks)), true
		}
	}
	return 0, false
}

// refusal returns the decision and the error for an invalid vote.
func refusal(rank world.Rank, v *wire.Vote, format string, args ...any) (*Decision, error) {
	why := fmt.Sprintf(format, args...)
	return failed(rank, v, "its vote does not count: "+why[:min(len(why), 1000)]),
		fmt.Errorf("the vote of rank %d in %v %d of communicator %d does not count: %s", rank, v.Kind, v.Seq,
			v.Comm, why)
}

// failed returns a failed decision for one rank.
func failed(rank world.Rank, v *wire.Vote, why string) *Decision {
	return &Decision{v.Kind, &wire.Outcome{Comm: v.Comm, Seq: v.Seq, Living: []wire.Voter{{Rank: rank}}, Failed: why}}
}

func (t *Table) has(rank world.Rank) bool {
	_, ended := t.ended[rank]
	return ended
}

// Ended notes that a rank has ended, and whether it died. Ended returns the completed decisions, in
// no particular order.
func (t *Table) Ended(rank world.Rank, died bool) []*Decision {
	if t.ended == nil {
		t.ended = map[world.Rank]bool{}
	}
	t.ended[rank] = t.ended[rank] || died
	var made []*Decision
	for k := range t.open {
		if d := t.decide(k); d != nil {
			made = append(made, d)
		}
	}
	return made
}

// Wanted returns the dead members of Restores without a living replacement, by Restore. A Restore
// wants none until a living member has voted: no rank could send a replacement the state.
func (t *Table) Wanted() (all [][]Want) {
	for k, a := range t.open {
		if !a.replaces() || !slices.ContainsFunc(a.members,
			func(r world.Rank) bool { return !t.has(r) && a.votes[r] != nil }) {
			continue
		}
		var wants []Want
		for _, r := range a.members {
			by, assigned := a.newest[r]
			if t.ended[r] && (!assigned || t.has(by)) {
				wants = append(wants, Want{r, wire.Invite{Comm: k.comm, Seq: k.seq, Members: a.first.Members}})
			}
		}
		if wants != nil {
			all = append(all, wants)
		}
	}
	return all
}

// replaces reports whether dead members have to be replaced.
func (a *agreement) replaces() bool {
	return a.first.Kind == wire.Restore && a.differ == "" && a.failed == ""
}

// Assign notes that rank by is started to replace a member. Assign returns false if no vote waits
// for the replacement.
func (t *Table) Assign(w *Want, by world.Rank) bool {
	a := t.open[w.key()]
	if a == nil || !a.replaces() {
		return false
	}
	if t.assigned == nil {
		t.assigned = map[world.Rank]key{}
	}
	t.assigned[by] = w.key()
	a.newest[w.Dead] = by
	return true
}

// Refuse notes that a member cannot be replaced, and why. The Restore fails when all have voted.
func (t *Table) Refuse(w *Want, why string) *Decision {
	if a := t.open[w.key()]; a != nil && a.failed == "" {
		a.failed = why
		return t.decide(w.key())
	}
	return nil
}

// Joined reports whether a rank is a full member, not a replacement that is still to join.
func (t *Table) Joined(rank world.Rank) bool {
	_, replaces := t.assigned[rank]
	return !replaces
}

// decide decides and removes an agreement if every member has voted or ended and every required
// replacement has voted.
func (t *Table) decide(k key) *Decision {
	a := t.open[k]
	o := &wire.Outcome{Comm: k.comm, Seq: k.seq, Flags: ^uint64(0), Differ: a.differ, Failed: a.failed}
	live := func(r world.Rank) bool {
		v := a.votes[r]
		if v != nil {
			o.Flags &= v.Flags
			o.Living = append(o.Living, wire.Voter{Rank: r, Part: v.Part})
		}
		return v != nil
	}
	for _, r := range a.members {
		died, ended := t.ended[r]
		switch {
		case died:
			o.Dead = append(o.Dead, r)
		case !ended && !live(r):
			return nil
		}
	}
	if a.replaces() && len(o.Dead) > 0 && len(o.Living) == 0 {
		a.failed = "no member is left that has the state"
		o.Failed = a.failed
	}
	for _, r := range o.Dead {
		by, assigned := a.newest[r]
		there := assigned && !t.has(by) && live(by)
		switch {
		case !a.replaces():
		case !there:
			return nil
		default:
			o.Replaced = append(o.Replaced, wire.Replacement{Dead: r, By: by})
		}
	}
	for _, r := range o.Replaced {
		delete(t.assigned, r.By)
	}
	delete(t.open, k)
	return &Decision{a.first.Kind, o}
}
