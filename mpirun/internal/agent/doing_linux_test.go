package agent

import (
	"testing"

	"gompi/mpirun/internal/ctl"
)

// At the time limit the launcher asks for stacks, also where programs are still looked for.
func TestRanksThatDoNotRunYetHaveNoStacks(t *testing.T) {
	a := &agent{local: map[int]int{}, launch: &ctl.Launch{Stacks: true}}
	a.add(ctl.Rank{Rank: 3})
	a.follow(&ctl.Ask{Stacks: []int{3}})
	a.follow(&ctl.Ask{})
	want := ctl.Append(nil, &ctl.Doing{})
	if got := string(a.reports); got != string(want) {
		t.Errorf("%q is reported, want %q", got, want)
	}
}
