package agree

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

func vote(kind wire.VoteKind, seq, flags uint64, members ...world.Rank) *wire.Vote {
	return &wire.Vote{Comm: 7, Seq: seq, Kind: kind, Flags: flags, Members: wire.Spans(members),
		Part: []byte{byte(flags)}}
}

// must passes a vote that is one.
func must(t *testing.T, table *Table, rank world.Rank, v *wire.Vote) *Decision {
	t.Helper()
	d, err := table.Vote(rank, v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wanted returns all that are wanted.
func wanted(table *Table) []Want { return slices.Concat(table.Wanted()...) }

func TestAnAgreementIsDecidedWhenAllHaveVotedOrEnded(t *testing.T) {
	table := Table{Ranks: 20}
	members := []world.Rank{1, 2, 3, 5, 6}
	table.Ended(6, false) // well, and before anybody votes
	if d := must(t, &table, 5, vote(wire.Shrink, 1, 0b110, members...)); d != nil {
		t.Fatalf("decided with one vote: %+v", d.Outcome)
	}
	must(t, &table, 2, vote(wire.Shrink, 1, 0, members...))
	if made := table.Ended(2, true); made != nil { // its vote does not count any more
		t.Fatalf("decided without rank 1 and 3: %+v", made[0].Outcome)
	}
	must(t, &table, 1, vote(wire.Shrink, 1, 0b011, members...))
	made := table.Ended(3, true)
	want := &Decision{wire.Shrink, &wire.Outcome{Comm: 7, Seq: 1, Flags: 0b010,
		Living: []wire.Voter{{Rank: 1, Part: []byte{3}}, {Rank: 5, Part: []byte{6}}}, Dead: []world.Rank{2, 3}}}
	if len(made) != 1 || !reflect.DeepEqual(made[0], want) {
		t.Fatalf("got %+v, want %+v", made, want)
	}
	if len(table.open) != 0 {
		t.Errorf("%d agreements are still open", len(table.open))
	}
}

func TestADeadMemberIsReplaced(t *testing.T) {
	table := Table{Ranks: 20}
	members := []world.Rank{2, 0, 1}
	must(t, &table, 0, vote(wire.Restore, 1, 1, members...))
	table.Ended(1, true)
	wants := wanted(&table)
	if len(wants) != 1 || wants[0].Dead != 1 || !reflect.DeepEqual(wire.Ranks(wants[0].Invite.Members), members) {
		t.Fatalf("wanted: %+v, want a replacement of rank 1", wants)
	}
	table.Assign(&wants[0], 7)
	if d := must(t, &table, 2, vote(wire.Restore, 1, 2, members...)); d != nil || table.Wanted() != nil {
		t.Fatalf("decided %+v before the replacement has voted", d)
	}
	table.Ended(7, true) // the replacement dies, too
	wants = wanted(&table)
	if len(wants) != 1 {
		t.Fatalf("wanted: %+v, want another replacement", wants)
	}
	table.Assign(&wants[0], 8)
	d := must(t, &table, 8, vote(wire.Restore, 1, 4, members...))
	want := &wire.Outcome{Comm: 7, Seq: 1,
		Living: []wire.Voter{{Rank: 2, Part: []byte{2}}, {Rank: 0, Part: []byte{1}}, {Rank: 8, Part: []byte{4}}},
		Dead:   []world.Rank{1}, Replaced: []wire.Replacement{{Dead: 1, By: 8}}}
	if d == nil || !reflect.DeepEqual(d.Outcome, want) || !table.Joined(8) || table.Joined(7) {
		t.Errorf("got %+v, want %+v", d, want)
	}
}

func TestARestoreFailsWithoutReplacements(t *testing.T) {
	table := Table{Ranks: 20}
	must(t, &table, 0, vote(wire.Restore, 1, 1, 0, 1, 2, 3))
	table.Ended(2, true)
	table.Assign(&wanted(&table)[0], 7)
	table.Ended(3, true)
	wants := wanted(&table)
	if d := table.Refuse(&wants[0], "no place"); d != nil || table.Wanted() != nil {
		t.Fatalf("decided %+v before rank 1 has voted", d)
	}
	d := must(t, &table, 1, vote(wire.Restore, 1, 1, 0, 1, 2, 3))
	if d == nil || d.Failed != "no place" || len(d.Living) != 2 || d.Replaced != nil {
		t.Errorf("got %+v, want that it failed", d)
	}
	if d := must(t, &table, 7, vote(wire.Restore, 1, 1, 0, 1, 2, 3)); d == nil || d.Failed == "" || len(d.Living) != 1 {
		t.Errorf("a replacement that comes too late gets %+v, want that it failed", d)
	}
}

func TestCallsThatDifferAreReported(t *testing.T) {
	table := Table{Ranks: 20}
	must(t, &table, 0, vote(wire.Agree, 1, 1, 0, 1))
	d := must(t, &table, 1, vote(wire.Shrink, 1, 1, 0, 1))
	if d == nil || !strings.Contains(d.Differ, "rank 0 called agree, but rank 1 called shrink") {
		t.Errorf("got %+v, want that the calls differ", d)
	}
}

func TestVotesThatCannotBeAreErrors(t *testing.T) {
	table := Table{Ranks: 20}
	must(t, &table, 0, vote(wire.Agree, 1, 1, 0, 1))
	if d, err := table.Vote(0, vote(wire.Agree, 1, 1, 0, 1)); d != nil || err == nil {
		t.Errorf("a second vote counts, or ends the wait for the outcome of the first: %+v, %v", d, err)
	}
	for what, c := range map[string]struct {
		by    world.Rank
		v     *wire.Vote
		wants string
	}{
		"a stranger": {2, vote(wire.Agree, 1, 1, 0, 1), "its members are [0 1]"},
		"members that the job has not": {0, vote(wire.Shrink, 9, 1, 0, 18, 19, 20),
			"it names rank 20 as a member: want ranks 0 to 19"},
		"members far beyond those it has": {0, vote(wire.Shrink, 9, 1, 0, 500), "it names rank 500 as a member"},
	} {
		d, err := table.Vote(c.by, c.v)
		if err == nil || !strings.Contains(err.Error(), c.wants) || d == nil || !strings.Contains(d.Failed, c.wants) ||
			d.Seq != c.v.Seq || len(d.Living) != 1 || d.Living[0].Rank != c.by {
			t.Errorf("the vote of %s: %+v, %v; want an error and a failed outcome for rank %d alone with %q", what, d,
				err, c.by, c.wants)
		}
	}
	if d, err := table.Vote(20, vote(wire.Agree, 1, 1, 0, 1)); d != nil || err == nil {
		t.Errorf("the vote of a rank that the job has not: %+v, %v; want an error, and no rank to answer", d, err)
	}
	if len(table.open) != 1 {
		t.Errorf("%d agreements are open, want that of the vote that counts", len(table.open))
	}
	table.Ended(1, true)
	if d, err := table.Vote(1, vote(wire.Agree, 2, 1, 0, 1)); d != nil || err != nil {
		t.Errorf("the vote of the dead: %v, %v; want that it is ignored", d, err)
	}
}

// TestEachAgreementIsDecidedOnce lets ranks vote in turn and die at random. Every agreement in
// which a living rank voted is decided once, among all that live.
func TestEachAgreementIsDecidedOnce(t *testing.T) {
	const ranks = 6
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		table := Table{Ranks: 20}
		var dead [ranks]bool
		decided := map[uint64]*Decision{}
		note := func(ds ...*Decision) {
			for _, d := range ds {
				if d == nil {
					continue
				}
				if decided[d.Seq] != nil {
					t.Fatalf("seed %d: agreement %d is decided twice", seed, d.Seq)
				}
				decided[d.Seq] = d
				for _, v := range d.Living {
					if dead[v.Rank] {
						t.Fatalf("seed %d: rank %d is dead and lives in agreement %d", seed, v.Rank, d.Seq)
					}
				}
				if len(d.Living)+len(d.Dead) != ranks {
					t.Fatalf("seed %d: agreement %d is of %d and %d ranks", seed, d.Seq, len(d.Living), len(d.Dead))
				}
			}
		}
		all := []world.Rank{0, 1, 2, 3, 4, 5}
		const last = 4
		for seq := uint64(1); seq <= last; seq++ {
			for _, r := range rng.Perm(ranks) {
				if rng.IntN(12) == 0 && !dead[r] && r != 0 {
					dead[r] = true
					note(table.Ended(world.Rank(r), true)...)
				}
				if !dead[r] {
					note(must(t, &table, world.Rank(r), vote(wire.Shrink, seq, 1, all...)))
				}
			}
			if decided[seq] == nil {
				t.Fatalf("seed %d: agreement %d is not decided, though all have voted or died", seed, seq)
			}
		}
		if len(table.open) != 0 || len(decided) != last {
			t.Fatalf("seed %d: %d decided, %d open; want %d and none", seed, len(decided), len(table.open), last)
		}
	}
}

// TestEachRestoreIsDecidedOnce lets members and replacements vote and die at random, while places
// are assigned and refused at random. A Restore has no outcome but these: all dead are replaced and
// a member lives, or it has failed.
func TestEachRestoreIsDecidedOnce(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(2000) {
		d := playRestore(t, seed)
		switch {
		case d.Failed != "":
			outcomes[d.Failed]++
		case len(d.Replaced) != len(d.Dead) ||
			!slices.ContainsFunc(d.Living, func(v wire.Voter) bool { return v.Rank < 4 }):
			t.Fatalf("seed %d: %+v", seed, d.Outcome)
		default:
			outcomes["ok"]++
		}
	}
	if outcomes["ok"] == 0 || outcomes["no place"] == 0 || outcomes["no member is left that has the state"] == 0 ||
		len(outcomes) != 3 {
		t.Errorf("outcomes: %v", outcomes)
	}
}

// playRestore returns the decision of one Restore of 4 ranks.
func playRestore(t *testing.T, seed uint64) (decided *Decision) {
	rng := rand.New(rand.NewPCG(seed, 1))
	table := Table{Ranks: 20}
	all := []world.Rank{0, 1, 2, 3}
	note := func(ds ...*Decision) {
		for _, d := range ds {
			if d != nil && decided != nil {
				t.Fatalf("seed %d: decided twice: %+v", seed, d.Outcome)
			}
			if d != nil {
				decided = d
			}
		}
	}
	note(must(t, &table, 0, vote(wire.Restore, 1, 1, all...)))
	living, next := []world.Rank{0, 1, 2, 3}, world.Rank(4)
	voted := map[world.Rank]bool{0: true}
	for decided == nil && len(living) > 0 {
		i := rng.IntN(len(living))
		r := living[i]
		switch {
		case rng.IntN(3) == 0:
			living = slices.Delete(living, i, i+1)
			note(table.Ended(r, true)...)
		case !voted[r]:
			voted[r] = true
			note(must(t, &table, r, vote(wire.Restore, 1, 1, all...)))
		}
		for _, wants := range table.Wanted() {
			if rng.IntN(10) == 0 {
				note(table.Refuse(&wants[0], "no place"))
			}
			for i := range wants {
				if table.Assign(&wants[i], next) {
					living = append(living, next)
					next++
				}
			}
		}
	}
	if decided == nil || len(table.open) != 0 {
		t.Fatalf("seed %d: %v decided, %d open", seed, decided, len(table.open))
	}
	return decided
}

func TestADeathStaysOneWhenTheRankEndsAgain(t *testing.T) {
	table := Table{Ranks: 20}
	table.Ended(1, true)
	table.Ended(1, false)
	d := must(t, &table, 0, vote(wire.Shrink, 1, 1, 0, 1))
	if d == nil || !slices.Equal(d.Dead, []world.Rank{1}) {
		t.Errorf("got %+v, want that rank 1 is dead", d)
	}
}
