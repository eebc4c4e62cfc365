package plan

import (
	"slices"
	"strings"
	"testing"
)

// cores returns n cores with one hardware thread each.
func cores(n int) [][]int {
	out := make([][]int, n)
	for i := range out {
		out[i] = []int{i}
	}
	return out
}

func TestBinding(t *testing.T) {
	threaded := [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}
	twoDomains := [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}}
	tests := []struct {
		name  string
		host  Host
		np    int
		how   BindTo
		want  []string // Ranges of each rank; "" is not bound
		notes int
	}{
		{"one rank has all cores", Host{Cores: cores(4)}, 1, BindAuto, []string{"0-3"}, 0},
		{"shares are disjoint and equal", Host{Cores: cores(4)}, 2, BindAuto, []string{"0-1", "2-3"}, 0},
		{"shares use every core", Host{Cores: cores(5)}, 3, BindAuto, []string{"0", "1-2", "3-4"}, 0},
		{"a core each", Host{Cores: cores(3)}, 3, BindAuto, []string{"0", "1", "2"}, 0},
		{"more ranks than cores are not bound", Host{Cores: cores(2), Slots: 3}, 3, BindAuto, []string{"", "", ""}, 0},
		{"twice as many ranks as cores have one in turn", Host{Cores: cores(2), Slots: 4}, 4, BindAuto,
			[]string{"0", "1", "0", "1"}, 0},
		{"unknown cores are not bound", Host{Slots: 2}, 2, BindAuto, []string{"", ""}, 0},
		{"none binds nothing", Host{Cores: cores(4)}, 2, BindNone, []string{"", ""}, 0},
		{"allowed cores need not begin at 0", Host{Cores: [][]int{{7}, {3}, {5}, {9}}}, 2, BindAuto,
			[]string{"3,5", "7,9"}, 0},
		{"hardware threads stay together", Host{Cores: threaded}, 2, BindAuto, []string{"0-1,4-5", "2-3,6-7"}, 0},
		{"shares follow memory domains", Host{Cores: cores(8), Numa: twoDomains}, 2, BindAuto,
			[]string{"0,2,4,6", "1,3,5,7"}, 0},
		{"core: one each", Host{Cores: cores(4)}, 2, BindCore, []string{"0", "1"}, 0},
		{"core: with its hardware threads", Host{Cores: threaded}, 2, BindCore, []string{"0,4", "1,5"}, 0},
		{"core: more ranks than cores take turns, with a note", Host{Cores: cores(2), Slots: 3}, 3, BindCore,
			[]string{"0", "1", "0"}, 1},
		{"core: unknown cores get a note", Host{Name: "a", Slots: 1}, 1, BindCore, []string{""}, 1},
		{"numa: one rank for each domain", Host{Cores: cores(8), Numa: twoDomains}, 2, BindNuma,
			[]string{"0,2,4,6", "1,3,5,7"}, 0},
		{"numa: neighbours share a domain", Host{Cores: cores(8), Numa: twoDomains}, 4, BindNuma,
			[]string{"0,2,4,6", "0,2,4,6", "1,3,5,7", "1,3,5,7"}, 0},
		{"numa: more ranks than cores still share fairly", Host{Cores: cores(2), Numa: [][]int{{0}, {1}}, Slots: 4},
			4, BindNuma,
			[]string{"0", "0", "1", "1"}, 0},
		{"numa: only what is allowed of a domain", Host{Cores: [][]int{{1}, {2}, {3}}, Numa: [][]int{{0, 1}, {2, 3}}},
			2, BindNuma, []string{"1", "2-3"}, 0},
		{"numa: larger domains get more ranks", Host{Cores: cores(4), Numa: [][]int{{0}, {1, 2, 3}}}, 4, BindNuma,
			[]string{"0", "1-3", "1-3", "1-3"}, 0},
		{"hwthread: one each", Host{Cores: threaded}, 3, BindHWThread, []string{"0", "4", "1"}, 0},
		{"hwthread: more ranks than threads take turns", Host{Cores: threaded[:1], Slots: 3}, 3, BindHWThread,
			[]string{"0", "4", "0"}, 1},
		{"package: its cores", Host{Cores: cores(8), Packages: twoDomains}, 2, BindPackage,
			[]string{"0,2,4,6", "0,2,4,6"}, 0},
		{"package: shares follow memory domains", Host{Cores: cores(8), Packages: twoDomains, Numa: twoDomains}, 2,
			BindPackage, []string{"0,2,4,6", "1,3,5,7"}, 0},
		{"numa: one domain when none is known", Host{Cores: cores(2)}, 2, BindNuma, []string{"0-1", "0-1"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map([]Host{tt.host}, []Program{{NP: tt.np}}, Policy{BindTo: tt.how})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range p.Ranks {
				got = append(got, Ranges(r.CPUs))
				if bound := tt.want[r.Rank] != ""; (r.CPUs != nil) != bound {
					t.Errorf("rank %d: CPUs %v, want bound %v", r.Rank, r.CPUs, bound)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if len(p.Notes) != tt.notes {
				t.Errorf("notes %q, want %d", p.Notes, tt.notes)
			}
		})
	}
}

// Whatever the ranks and cores, default shares are disjoint, hold all cores
// together and differ by one core at most.
func TestDefaultSharesPartitionTheCores(t *testing.T) {
	for c := 1; c <= 17; c++ {
		for n := 1; n <= c; n++ {
			p, err := Map([]Host{{Cores: cores(c)}}, []Program{{NP: n}}, Policy{})
			if err != nil {
				t.Fatal(err)
			}
			var all []int
			for _, r := range p.Ranks {
				if len(r.CPUs) != c/n && len(r.CPUs) != c/n+1 {
					t.Errorf("%d ranks on %d cores: rank %d has %v", n, c, r.Rank, r.CPUs)
				}
				all = append(all, r.CPUs...)
			}
			if got, want := Ranges(all), Ranges(allThreads(cores(c))); got != want {
				t.Errorf("%d ranks on %d cores: shares are %s together, want %s", n, c, got, want)
			}
		}
	}
}

func TestExplicitBindingsThatCannotBeHadAreNoted(t *testing.T) {
	in := []Host{{Name: "a", Slots: 3, Cores: cores(2)}, {Name: "b", Slots: 1}, {Name: "c", Slots: 5, Cores: cores(1)}}
	tests := []struct {
		how  BindTo
		want []string
	}{
		{BindAuto, nil},
		{BindNone, nil},
		{BindNuma, []string{"-bind-to numa binds nothing where the cores are not known: b"}},
		{BindCore, []string{
			"-bind-to core binds nothing where the cores are not known: b",
			"-bind-to core makes ranks take turns, which -bind-to none does not: a has 3 ranks on 2 cores, c has 5 ranks on 1 core"}},
	}
	for _, tt := range tests {
		p, err := Map(in, []Program{{}}, Policy{BindTo: tt.how})
		if err != nil || !slices.Equal(p.Notes, tt.want) {
			t.Errorf("%v: %q, %v; want %q", tt.how, p.Notes, err, tt.want)
		}
	}
}

func TestNotesOfBindingNameTheOrderThatWasTyped(t *testing.T) {
	for _, order := range []string{"core", "hwthread", "hwthread:PE=1", "core:PE=2"} {
		var policy Policy
		if err := policy.SetMapBy(order); err != nil {
			t.Fatal(err)
		}
		p, err := Map([]Host{{Name: "a", Slots: 3, Cores: cores(2)}}, []Program{{}}, policy)
		want := "-map-by " + order + " makes ranks take turns"
		if err != nil || len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], want) {
			t.Errorf("%q, %v; want %s", p.Notes, err, want)
		}
	}
}

func TestBindingIsByHost(t *testing.T) {
	in := []Host{{Name: "a", Slots: 1, Cores: cores(2)}, {Name: "b", Slots: 3, Cores: cores(2)}}
	p, err := Map(in, []Program{{}}, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Ranges(p.Ranks[0].CPUs); got != "0-1" {
		t.Errorf("rank 0, alone on a, has %q, want 0-1", got)
	}
	if p.Ranks[1].CPUs != nil {
		t.Errorf("rank 1, one of 3 on 2 cores, is bound to %v", p.Ranks[1].CPUs)
	}
}
