package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// bindings returns the binding of each rank: "" for none.
func bindings(p *Plan) []string {
	var out []string
	for _, r := range p.Ranks {
		out = append(out, Ranges(r.CPUs))
	}
	return out
}

// nodes returns the host of each rank.
func nodes(p *Plan) []int {
	var out []int
	for _, r := range p.Ranks {
		out = append(out, r.Node)
	}
	return out
}

// policy reads the flags of a command line, in the order in which options does.
func policy(t *testing.T, flags string) Policy {
	t.Helper()
	var p Policy
	var err error
	for f := range strings.FieldsSeq(flags) {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "-N":
			p.PerNode = atoi(t, value)
		case "map":
			err = p.SetMapBy(value)
		case "bind":
			p.BindTo, err = ParseBindTo(value)
		case "rank":
			p.RankBy, err = ParseRankBy(value)
		case "list":
			p.CPUList = value
		case "threads":
			p.HWThreads = true
		default:
			t.Fatalf("test with %q", f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// twoByFour is a host of two memory domains of four cores, each in a package
// of its own.
func twoByFour() Host {
	parts := [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}
	return Host{Name: "big", Cores: cores(8), Numa: parts, Packages: parts}
}

func TestPlacementWithinAHost(t *testing.T) {
	threaded := Host{Name: "smt", Cores: [][]int{{0, 2}, {1, 3}}}
	caches := twoByFour()
	caches.L3 = [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}
	uneven := Host{Name: "uneven", Cores: cores(8), Numa: [][]int{{0, 1}, {2, 3, 4, 5, 6, 7}}}
	part := Host{Name: "part", Cores: cores(8)[2:5], Numa: [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}}
	tests := []struct {
		flags string
		host  Host
		np    int // 0: all slots
		want  []string
		notes int
	}{
		{"map=core", twoByFour(), 3, []string{"0", "1", "2"}, 0},
		{"map=core bind=none", twoByFour(), 2, []string{"", ""}, 0},
		{"map=core bind=numa", twoByFour(), 2, []string{"0-3", "4-7"}, 0},
		{"map=numa", twoByFour(), 2, []string{"0-3", "4-7"}, 0},
		{"map=numa", twoByFour(), 4, []string{"0-1", "4-5", "2-3", "6-7"}, 0},
		{"map=numa", twoByFour(), 3, []string{"0-1", "4-7", "2-3"}, 0},
		{"map=numa rank=fill", twoByFour(), 4, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=numa rank=core bind=core", twoByFour(), 5, []string{"0", "1", "2", "4", "5"}, 0},
		{"map=numa rank=fill", twoByFour(), 1, []string{"0-3"}, 0},
		{"map=numa bind=core", twoByFour(), 3, []string{"0", "4", "1"}, 0},
		{"map=numa bind=numa", twoByFour(), 3, []string{"0-3", "4-7", "0-3"}, 0},
		{"map=numa", uneven, 8, []string{"0-1", "2", "0-1", "3-4", "0-1", "5", "0-1", "6-7"}, 0},
		{"map=numa", part, 2, []string{"2-3", "4"}, 0},
		{"map=l3cache", caches, 4, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=l3cache rank=fill", caches, 8, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, 0},
		{"map=numa bind=l3cache", caches, 3, []string{"0-1", "4-5", "2-3"}, 0},
		{"map=core bind=l3cache", caches, 4, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=ppr:1:l3cache", caches, 0, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=l3cache", Host{Cores: cores(2)}, 2, []string{"0", "1"}, 0}, // caches are not known
		{"map=socket bind=socket", twoByFour(), 2, []string{"0-3", "4-7"}, 0},
		{"map=package", Host{Cores: cores(2)}, 2, []string{"0", "1"}, 0}, // packages are not known
		{"map=ppr:2:numa", twoByFour(), 0, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=ppr:1:socket", twoByFour(), 0, []string{"0-3", "4-7"}, 0},
		{"map=ppr:1:numa bind=core", twoByFour(), 0, []string{"0", "4"}, 0},
		{"map=ppr:3:numa", part, 0, []string{"", "", "", "", "", ""}, 1},
		{"map=ppr:2:node", twoByFour(), 0, []string{"0-3", "4-7"}, 0},
		{"map=slot:PE=3", twoByFour(), 2, []string{"0-2", "3-5"}, 0},
		{"map=slot:PE=2", twoByFour(), 0, []string{"0-1", "2-3", "4-5", "6-7"}, 0},
		{"map=numa:PE=2", twoByFour(), 3, []string{"0-1", "4-5", "2-3"}, 0},
		{"map=slot:PE=5", twoByFour(), 2, []string{"0-4", "0-1,5-7"}, 1},
		{"map=slot:PE=20", twoByFour(), 1, []string{"0-7"}, 0},
		{"map=slot:PE=2 bind=none", twoByFour(), 1, []string{""}, 0},
		{"list=1,4-5", twoByFour(), 0, []string{"1", "4", "5"}, 0},
		{"list=1,4-5", twoByFour(), 2, []string{"1", "4-5"}, 0},
		{"list=1,4-5 bind=none", twoByFour(), 2, []string{"1,4-5", "1,4-5"}, 0},
		{"list=1,4-5", twoByFour(), 4, []string{"1,4-5", "1,4-5", "1,4-5", "1,4-5"}, 1},
		{"list=0-1 bind=core", threaded, 2, []string{"0", "1"}, 0},
		{"list=0-3", Host{Name: "blind", Slots: 1}, 1, []string{""}, 1},
		{"threads", threaded, 0, []string{"0", "2", "1", "3"}, 0},
		{"threads", threaded, 2, []string{"0,2", "1,3"}, 0},
		{"threads map=slot:PE=2", threaded, 0, []string{"0,2", "1,3"}, 0},
		{"threads bind=core", threaded, 2, []string{"0,2", "1,3"}, 0},
		{"bind=hwthread", threaded, 2, []string{"0", "2"}, 0},
		{"", threaded, 0, []string{"0,2", "1,3"}, 0},
		{"", Host{Cores: cores(8), Quota: 3}, 0, []string{"0-1", "2-4", "5-7"}, 0},
		{"", Host{Cores: cores(2), Quota: 3}, 0, []string{"0", "1"}, 0},
		{"", Host{Name: "q", Cores: cores(8), Quota: 1}, 2, []string{"0-3", "4-7"}, 1},
		{"map=slot:PE=2", Host{Cores: cores(8), Quota: 4}, 0, []string{"0-1", "2-3"}, 0},
	}
	for _, tt := range tests {
		p, err := Map([]Host{tt.host}, []Program{{NP: tt.np}}, policy(t, tt.flags))
		if err != nil {
			t.Errorf("%q: %v", tt.flags, err)
			continue
		}
		if got := bindings(p); !slices.Equal(got, tt.want) {
			t.Errorf("%q, %d ranks: %q, want %q", tt.flags, tt.np, got, tt.want)
		}
		if len(p.Notes) != tt.notes {
			t.Errorf("%q, %d ranks: notes %q, want %d", tt.flags, tt.np, p.Notes, tt.notes)
		}
		checkPlan(t, p)
	}
}

func TestPlacementOverHosts(t *testing.T) {
	small := Host{Name: "small", Cores: cores(2)}
	tests := []struct {
		flags string
		hosts []Host
		np    int
		want  []int
	}{
		{"", hosts(t, "a:3 b:1 c:2"), 5, []int{0, 0, 0, 1, 2}},
		{"rank=slot", hosts(t, "a:3 b:1 c:2"), 5, []int{0, 0, 0, 1, 2}},
		{"rank=node", hosts(t, "a:3 b:1 c:2"), 6, []int{0, 1, 2, 0, 2, 0}},
		{"map=node", hosts(t, "a:3 b:1 c:2"), 6, []int{0, 1, 2, 0, 2, 0}},
		{"map=node rank=slot", hosts(t, "a:3 b:1 c:2"), 4, []int{0, 0, 1, 2}},
		{"map=node rank=node", hosts(t, "a:3 b:1 c:2"), 4, []int{0, 1, 2, 0}},
		{"map=numa", []Host{twoByFour(), small}, 9, []int{0, 0, 0, 0, 0, 0, 0, 0, 1}},
		{"map=ppr:2:numa", []Host{twoByFour(), small}, 0, []int{0, 0, 0, 0, 1, 1}},
		{"map=ppr:2:numa rank=node", []Host{twoByFour(), small}, 0, []int{0, 1, 0, 1, 0, 0}},
		{"map=ppr:2:numa -N=3", []Host{twoByFour(), small}, 0, []int{0, 0, 0, 1, 1}},
		{"map=slot:PE=4", []Host{twoByFour(), small}, 0, []int{0, 0, 1}},
	}
	for _, tt := range tests {
		p, err := Map(tt.hosts, []Program{{NP: tt.np}}, policy(t, tt.flags))
		if err != nil {
			t.Errorf("%q: %v", tt.flags, err)
			continue
		}
		if got := nodes(p); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v, want %v", tt.flags, got, tt.want)
		}
		checkPlan(t, p)
	}
}

// Each program is numbered by itself, its ranks after the previous program's.
func TestRanksAreNumberedProgramByProgram(t *testing.T) {
	p, err := Map(hosts(t, "a:4 b:4"), []Program{{NP: 4}, {NP: 4}}, policy(t, "map=node rank=slot"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := nodes(p), []int{0, 0, 1, 1, 0, 0, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestPlacementsThatCannotBeHad(t *testing.T) {
	tests := []struct{ flags, want string }{
		{"list=8-9", "-cpu-list 8-9: big has none of them: want some of 0-7"},
		{"map=slot:PE=2 bind=numa", "-map-by :PE=2 and -bind-to numa: want one of them"},
		{"map=ppr:2:numa", "-np 5: 2 per numa on 1 hosts: want -np 4 or less, more hosts"},
	}
	for _, tt := range tests {
		if _, err := Map([]Host{twoByFour()}, []Program{{NP: 5}}, policy(t, tt.flags)); err == nil ||
			err.Error() != tt.want {
			t.Errorf("%q: %v, want %s", tt.flags, err, tt.want)
		}
	}
}

func TestRankByAndCPUListsThatAreWrongAreQuoted(t *testing.T) {
	if _, err := ParseRankBy("Numa"); err == nil || err.Error() != `-rank-by "Numa": want slot, node or fill` {
		t.Error(err)
	}
	for _, s := range []string{"", "a", "3-1", "1,", "-1", "0-", "99999999", "1-2-3"} {
		if got, err := ParseCPUs(s); err == nil || !strings.Contains(err.Error(), `"`+s+`"`) {
			t.Errorf("ParseCPUs(%q) = %v, %v", s, got, err)
		}
	}
	if got, err := ParseCPUs("8,0-3,2"); err != nil || Ranges(got) != "0-3,8" {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzMap checks, for any hosts and policy, that every rank is placed once, that limits are kept,
// that bindings are within the allowed CPUs, and that bindings are disjoint where that is
// guaranteed.
func FuzzMap(f *testing.F) {
	f.Add(4, 0, 8, 1, 2, 3, "map=numa", "auto", "auto", 0, "", false)
	f.Add(0, 2, 3, 0, 1, 1, "map=ppr:2:numa", "core", "node", 2, "0-5", true)
	f.Add(5, 0, 8, 1, 2, 3, "map=package", "core", "fill", 0, "", false)
	f.Add(9, 2, 8, 1, 2, 3, "map=package:span,nooversubscribe", "core", "", 0, "", false)
	f.Add(9, 0, 4, 2, 4, 0, ":PE=2", "hwthread", "slot", 0, "1", true)
	f.Fuzz(func(t *testing.T, np, slots, c, perCore, parts, quota int, mapBy, bindTo, rankBy string, perNode int,
		list string, hwthreads bool) {
		bound := func(n, limit int) int { return max(0, n) % (limit + 1) }
		c, perCore, parts = bound(c, 16), 1+bound(perCore, 2), 1+bound(parts, 4)
		p := Policy{PerNode: bound(perNode, 9), CPUList: list, HWThreads: hwthreads, GPUs: bound(slots, 2)}
		if p.SetMapBy(strings.TrimPrefix(mapBy, "map=")) != nil {
			return
		}
		var err error
		if p.BindTo, err = ParseBindTo(bindTo); err != nil {
			return
		}
		p.RankBy, _ = ParseRankBy(rankBy)
		var in []Host
		for h := range 3 {
			host := Host{Name: string(rune('a' + h)), Slots: bound(slots, 9) * h, Quota: bound(quota, 20),
				Numa: make([][]int, parts)}
			for i := range c {
				var core []int
				for k := range perCore {
					core = append(core, i+k*c)
				}
				host.Cores = append(host.Cores, core)
				host.Numa[i%parts] = append(host.Numa[i%parts], core...)
			}
			host.Packages, host.L3 = host.Numa, host.Numa
			for i := range h * bound(quota, 3) {
				host.GPUs = append(host.GPUs, GPU{Label: strconv.Itoa(i), CPUs: host.Numa[i%parts]})
			}
			in = append(in, host)
		}
		plan, err := Map(in, []Program{{NP: bound(np, 40)}, {NP: 2}}, p)
		if err != nil {
			return
		}
		checkPlan(t, plan)
		checkBindings(t, plan)
		checkGPUs(t, plan)
	})
}

// checkBindings checks the guarantees about bindings.
func checkBindings(t *testing.T, p *Plan) {
	t.Helper()
	for node, h := range p.Hosts {
		allowed, taken := allThreads(h.Cores), map[int]bool{}
		n := len(p.Local[node])
		disjoint := p.Policy.BindTo == BindAuto && p.Policy.Order != ByL3 && p.Policy.Order != ByNuma &&
			p.Policy.Order != ByPackage && p.Policy.PE*n <= len(p.Policy.units(&h)) &&
			n <= len(p.Policy.units(&h))
		for _, rank := range p.Local[node] {
			cpus := p.Ranks[rank].CPUs
			if cpus != nil && len(cpus) == 0 || !slices.IsSorted(cpus) {
				t.Errorf("rank %d is bound to %v", rank, cpus)
			}
			for _, cpu := range cpus {
				if !slices.Contains(allowed, cpu) {
					t.Errorf("rank %d is bound to %v, of %v", rank, cpus, allowed)
				}
				if taken[cpu] && disjoint {
					t.Errorf("rank %d shares CPU %d of %s: %+v", rank, cpu, h.Name, p.Policy)
				}
				taken[cpu] = true
			}
			if p.Policy.CPUList != "" && len(allowed) > 0 && cpus == nil {
				t.Errorf("rank %d is not bound, and -cpu-list is %s", rank, p.Policy.CPUList)
			}
			if len(allowed) > 0 && cpus == nil && p.Policy.BindTo > BindNone && p.Policy.BindTo != BindGPU &&
				n <= len(h.Cores) {
				t.Errorf("rank %d is not bound to a %s", rank, p.Policy.BindTo)
			}
		}
	}
}
