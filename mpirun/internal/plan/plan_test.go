package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gompi/hostfile"
)

// hosts reads "a:2 b:4/8 c": names with slots and limits.
func hosts(t *testing.T, s string) []Host {
	t.Helper()
	var out []Host
	for f := range strings.FieldsSeq(s) {
		name, counts, _ := strings.Cut(f, ":")
		h := Host{Name: name}
		if counts != "" {
			slots, limit, limited := strings.Cut(counts, "/")
			h.Slots = atoi(t, slots)
			if limited {
				h.MaxSlots = atoi(t, limit)
			}
		}
		out = append(out, h)
	}
	return out
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n := 0
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		t.Fatalf("test with the number %q", s)
	}
	return n
}

// programs reads "2 1@0,1 *@1=3": ranks, and the hosts (with shares) allowed.
func programs(t *testing.T, s string) []Program {
	t.Helper()
	var out []Program
	for i, f := range strings.Fields(s) {
		np, where, _ := strings.Cut(f, "@")
		p := Program{Name: "./" + string(rune('p'+i))}
		if np != "*" {
			p.NP = atoi(t, np)
		}
		if where != "" {
			for w := range strings.SplitSeq(where, ",") {
				host, slots, limited := strings.Cut(w, "=")
				share := hostfile.Share{Host: atoi(t, host)}
				if limited {
					share.Slots = atoi(t, slots)
				}
				p.Hosts = append(p.Hosts, share)
			}
		}
		out = append(out, p)
	}
	return out
}

// sketch writes the host of each rank, a blank between programs.
func sketch(p *Plan) string {
	var b strings.Builder
	for i, r := range p.Ranks {
		if i > 0 && r.Prog != p.Ranks[i-1].Prog {
			b.WriteByte(' ')
		}
		b.WriteString(p.Hosts[r.Node].Name)
	}
	return b.String()
}

func TestMapPlacesRanks(t *testing.T) {
	byNode := Policy{Order: ByNode}
	tests := []struct {
		name, hosts, programs string
		policy                Policy
		want                  string
	}{
		{"no -np takes all slots", "a:2 b:3", "*", Policy{}, "aabbb"},
		{"no -np by node takes all slots", "a:2 b:3", "*", byNode, "ababb"},
		{"by slot fills hosts in order", "a:2 b:3 c:1", "4", Policy{}, "aabb"},
		{"by node deals ranks out", "a:2 b:3 c:1", "4", byNode, "abca"},
		{"by node skips full hosts", "a:4 b:1 c:2", "7", byNode, "abcacaa"},
		{"ranks beyond the slots go where the load is lowest", "a:4 b:2", "9", Policy{}, "aaaaaabbb"},
		{"equal loads go to the first host", "a:1 b:1", "3", Policy{}, "aab"},
		{"twice the slots doubles every host", "a:1 b:3", "8", Policy{}, "aabbbbbb"},
		{"by node beyond the slots deals on", "a:1 b:1 c:1", "5", byNode, "abcab"},
		{"ranks beyond the slots respect max_slots", "a:1/1 b:1/4", "4", Policy{}, "abbb"},
		{"by node beyond the slots respects max_slots", "a:1/2 b:1", "5", byNode, "ababb"},
		{"-N limits a host and fills it", "a:4 b:4 c:4", "5", Policy{PerNode: 2}, "aabbc"},
		{"-N without -np is N on every host", "a:4 b:4", "*", Policy{PerNode: 3}, "aaabbb"},
		{"-N goes beyond slots", "a:1 b:1", "*", Policy{PerNode: 2}, "aabb"},
		{"-N by node deals up to N", "a:4 b:4 c:1", "6", Policy{PerNode: 2, Order: ByNode}, "abcabc"},
		{"-N keeps to max_slots", "a:1/1 b:4", "*", Policy{PerNode: 2}, "abb"},
		{"-N with -nooversubscribe keeps to slots", "a:2 b:8", "6",
			Policy{PerNode: 4, NoOversubscribe: true}, "aabbbb"},
		{"a host without slots counts one without known cores", "a b", "*", Policy{}, "ab"},
		{"one rank", "a:4", "1", byNode, "a"},
		{"programs continue where the last one stopped", "a:2 b:2", "1 2", Policy{}, "a ab"},
		{"programs by node continue too", "a:2 b:2 c:2", "2 2", byNode, "ab ca"},
		{"by node continues even from the last host", "a:2 b:2", "2 1", byNode, "ab a"},
		{"a program is kept to its hosts", "a:2 b:2", "2@1 2@0", Policy{}, "bb aa"},
		{"a share limits what a program takes by itself", "a:4 b:4", "*@0=1,1=2", Policy{}, "abb"},
		{"the last program without -np takes what is left", "a:2 b:2", "1 *", Policy{}, "a abb"},
		{"a share larger than the host is the host", "a:2 b:4", "*@0=9", Policy{}, "aa"},
		{"by node within a program's hosts", "a:2 b:2 c:2", "3@0,2", byNode, "aca"},
		{"programs beyond the slots see each other's load", "a:1 b:1", "1@0 3", Policy{}, "a abb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map(hosts(t, tt.hosts), programs(t, tt.programs), tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			if got := sketch(p); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			checkPlan(t, p)
		})
	}
}

// With SPAN the packages of all hosts get equal numbers of ranks, and ranks of a package are
// neighbors.
func TestMapSpansAllHosts(t *testing.T) {
	one := Host{Name: "one", Cores: cores(4)}
	for _, tt := range []struct {
		flags string
		np    int
		want  string // host by host, the first core of each rank
	}{
		{"map=socket:SPAN bind=core", 6, "0 1 4 5 | 0 1"},
		{"map=socket:SPAN bind=core", 7, "0 1 2 4 5 | 0 1"},
		{"map=socket:SPAN,PE=1", 3, "0 4 | 0"},
		{"map=socket:PE=1", 6, "0 4 1 5 2 6 |"},
		{"map=socket:SPAN,nooversubscribe bind=core", 12, "0 1 2 3 4 5 6 7 | 0 1 2 3"},
		{"map=socket:SPAN bind=core rank=node", 6, "0 4 1 5 | 0 1"},
	} {
		p, err := Map([]Host{twoByFour(), one}, []Program{{NP: tt.np}}, policy(t, tt.flags))
		if err != nil {
			t.Errorf("%s: %v", tt.flags, err)
			continue
		}
		checkPlan(t, p)
		var got []string
		for _, local := range p.Local {
			var first []string
			for _, rank := range local {
				first = append(first, strconv.Itoa(p.Ranks[rank].CPUs[0]))
			}
			got = append(got, strings.Join(first, " "))
		}
		if text := strings.TrimSpace(strings.Join(got, " | ")); text != tt.want {
			t.Errorf("%d ranks, %s: %s, want %s", tt.np, tt.flags, text, tt.want)
		}
	}
}

// checkPlan checks the invariants of every plan.
func checkPlan(t *testing.T, p *Plan) {
	t.Helper()
	total, next := 0, make([]int, len(p.Hosts))
	for i, prog := range p.Programs {
		if prog.NP < 1 {
			t.Errorf("program %d has %d ranks", i, prog.NP)
		}
		total += prog.NP
	}
	if total != len(p.Ranks) {
		t.Errorf("%d ranks, and the programs have %d", len(p.Ranks), total)
	}
	for i, r := range p.Ranks {
		if r.Rank != i || r.LocalRank != next[r.Node] || p.Local[r.Node][r.LocalRank] != i {
			t.Errorf("rank %d: %+v, ranks of its host %v", i, r, p.Local[r.Node])
		}
		next[r.Node]++
	}
	for i, h := range p.Hosts {
		if h.Slots < 1 {
			t.Errorf("%s has %d slots", h.Name, h.Slots)
		}
		if h.MaxSlots > 0 && next[i] > h.MaxSlots {
			t.Errorf("%s has %d ranks and max_slots=%d", h.Name, next[i], h.MaxSlots)
		}
		if p.Policy.NoOversubscribe && next[i] > h.Slots {
			t.Errorf("%s has %d ranks on %d slots with -nooversubscribe", h.Name, next[i], h.Slots)
		}
	}
}

func TestMapSaysWhatWouldFit(t *testing.T) {
	refuse := Policy{NoOversubscribe: true}
	tests := []struct {
		name, hosts, programs string
		policy                Policy
		want                  string
	}{
		{"-nooversubscribe lists the slots", "a:2 b:3", "6", refuse,
			"6 ranks, and slots for 5 (a 2, b 3): want -np 5 or less, more slots, or no -nooversubscribe"},
		{"-nooversubscribe counts what other programs took", "a:2 b:2", "3 2", refuse,
			"program 2 (./q): 2 ranks, and slots for 1 (a 0, b 1): want -np 1 or less, more slots, or no -nooversubscribe"},
		{"-nooversubscribe with nothing left", "a:2", "2 1", refuse,
			"program 2 (./q): 1 rank, and slots for 0 (a 0): want more slots, or no -nooversubscribe"},
		{"-nooversubscribe counts shares", "a:4 b:4", "3@0=1,1=1", refuse,
			"3 ranks, and slots for 2 (a 1, b 1): want -np 2 or less, more slots, or no -nooversubscribe"},
		{"many hosts are counted, not listed", "a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1 j:1", "11", refuse,
			"11 ranks, and slots for 10 (a 1, b 1, c 1, d 1, e 1, f 1, g 1, h 1, and 2 more): want -np 10 or less, more slots, or no -nooversubscribe"},
		{"max_slots", "a:1/2 b:1/3", "6", Policy{},
			"-np 6: max_slots leaves room on a for 2, b for 3: want -np 5 or less, more hosts"},
		{"-N", "a:4 b:4", "5", Policy{PerNode: 2}, "-np 5: 2 per node on 2 hosts: want -np 4 or less, more hosts"},
		{"-N and max_slots", "a:1/1 b:4", "4", Policy{PerNode: 2},
			"-np 4: max_slots leaves room on a for 1, b for 2: want -np 3 or less, more hosts"},
		{"no slot left for a program without -np", "a:1 b:1", "2 *", Policy{},
			"program 2 (./q): no slot is left for it (a 0, b 0): want -np to say how many ranks share one"},
		{"too many ranks", "a:1", "1048577", Policy{}, "-np 1048577: want 1 to 1048576"},
		{"too many ranks together", "a:1", "1048576 1", Policy{},
			"program 2 (./q): -np 1: want 1048576 ranks or less in all"},
		{"too many slots", "a:1048576 b:1", "*", Policy{}, "1048577 slots: want -np, 1048576 or less"},
		{"too many ranks on a host", "a:1", "1000000", Policy{}, "1000000 ranks on a: want 65536 or less on a host"},
		{"too many ranks and spares on a host", "b:1 a:65500", "65500@1", Policy{Spares: 37},
			"65500 ranks on a: want 65499 or less on a host with -spares 37"},
		{"negative ranks", "a:1", "-1", Policy{}, "-np -1: want 1 to 1048576"},
		{"negative per node", "a:1", "1", Policy{PerNode: -1}, "-1 ranks per node: want 1 to 1048576"},
		{"a host that is not there", "a:1", "1@1", Policy{}, "host 1 of 1"},
		{"no host", "", "1", Policy{}, "nothing to place: want a host and a program"},
		{"no program", "a:1", "", Policy{}, "nothing to place: want a host and a program"},
		{"negative slots", "a:-1", "1", Policy{}, "a: -1 slots, at most 0: want 1 to 1048576"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map(hosts(t, tt.hosts), programs(t, tt.programs), tt.policy)
			if err == nil {
				t.Fatalf("got %s, want an error", sketch(p))
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

func TestNotesReportOversubscriptionAndIdleHosts(t *testing.T) {
	tests := []struct {
		name, hosts, programs string
		policy                Policy
		want                  []string
	}{
		{"nothing to say", "a:2 b:2", "3", Policy{}, nil},
		{"more ranks than slots", "a:2 b:1", "6", Policy{},
			[]string{"a has 4 ranks on 2 slots, b has 2 ranks on 1 slot (-nooversubscribe refuses this, -oversubscribe says nothing of it)"}},
		{"an idle host", "a:2 b:2", "2", Policy{}, []string{"no rank on b: -map-by node would use it"}},
		{"idle hosts", "a:2 b:2 c:2", "3", Policy{Order: ByNode}, nil},
		{"fewer ranks than hosts", "a:2 b:2 c:2", "2", Policy{}, []string{"no rank on b, c: -np 6 would use them"}},
		{"fewer ranks than hosts by node", "a:2 b:2 c:2", "2", Policy{Order: ByNode},
			[]string{"no rank on c: -np 6 would use it"}},
		{"-N with too few ranks", "a:2 b:2 c:2", "2", Policy{PerNode: 2},
			[]string{"no rank on b, c: -np 6 would use them"}},
		{"-N with enough ranks", "a:2 b:2 c:2", "4", Policy{PerNode: 2},
			[]string{"no rank on c: -map-by node would use it"}},
		{"hosts that no program may use are not idle", "a:2 b:2 c:2", "2@0", Policy{}, nil},
		{"several programs", "a:2 b:2", "1 1", Policy{}, []string{"no rank on b: -map-by node would use it"}},
		{"several programs with too few ranks", "a:2 b:2 c:2", "1 1", Policy{},
			[]string{"no rank on b, c: more ranks would use them"}},
		{"both", "a:1/4 b:1", "3@0 1@0,1=1", Policy{},
			[]string{"a has 3 ranks on 1 slot (-nooversubscribe refuses this, -oversubscribe says nothing of it)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map(hosts(t, tt.hosts), programs(t, tt.programs), tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.Notes, tt.want) {
				t.Errorf("got %q, want %q", p.Notes, tt.want)
			}
		})
	}
}

// A host with two cores of two threads each has as many slots as a batch system
// says, and time for as many processors as its control group has.
func TestOversubscriptionIsOfProcessors(t *testing.T) {
	threads := [][]int{{0, 2}, {1, 3}}
	for _, tt := range []struct {
		name   string
		host   Host
		np     int
		policy Policy
		want   string
	}{
		{"slots of Slurm's tasks, processors are free", Host{Slots: 1, Cores: threads}, 4, Policy{}, ""},
		{"more than processors", Host{Slots: 1, Cores: threads}, 5, Policy{}, "h has 5 ranks on 4 processors "},
		{"as many as the slots that the user names", Host{Slots: 6, Cores: threads}, 6, Policy{}, ""},
		{"more than those", Host{Slots: 6, Cores: threads}, 7, Policy{}, "h has 7 ranks on 4 processors "},
		{"a control group's time", Host{Slots: 1, Cores: threads, Quota: 2}, 3, Policy{},
			"h has 3 ranks on 2 processors "},
		{"cores are not known", Host{Slots: 2}, 3, Policy{}, "h has 3 ranks on 2 slots "},
		{"asked for", Host{Slots: 1, Cores: threads}, 5, Policy{Oversubscribe: true}, ""},
	} {
		tt.host.Name = "h"
		p, err := Map([]Host{tt.host}, []Program{{Name: "x", NP: tt.np}}, tt.policy)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if output := strings.Join(p.Notes, "; "); (output != "") != (tt.want != "") ||
			!strings.HasPrefix(output, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, output, tt.want)
		}
	}
}

// Whatever the advice for idle hosts says, following it leaves none idle.
func TestAdviceForIdleHostsIsTrue(t *testing.T) {
	for _, hostList := range []string{"a:1 b:1", "a:4 b:1 c:2", "a:2/2 b:1/1 c:9", "a:1 b:1 c:1 d:1"} {
		for np := 1; np <= 6; np++ {
			for _, policy := range []Policy{{}, {Order: ByNode}, {PerNode: 2}, {NoOversubscribe: true}} {
				prog := []Program{{Name: "p", NP: np}}
				p, err := Map(hosts(t, hostList), prog, policy)
				if err != nil || len(p.Notes) == 0 {
					continue
				}
				note := p.Notes[len(p.Notes)-1]
				_, advice, idle := strings.Cut(note, ": ")
				if !idle {
					continue
				}
				follow(t, advice, &prog[0], &policy)
				p, err = Map(hosts(t, hostList), prog, policy)
				if err != nil {
					t.Errorf("%s, -np %d: %q: %v", hostList, np, note, err)
					continue
				}
				for i := range p.Local {
					if len(p.Local[i]) == 0 {
						t.Errorf("%s, -np %d: %q leaves %s idle", hostList, np, note, p.Hosts[i].Name)
					}
				}
			}
		}
	}
}

// follow applies "-np 4 -map-by node would use them".
func follow(t *testing.T, advice string, prog *Program, policy *Policy) {
	t.Helper()
	words := strings.Fields(advice)
	for i := 0; words[i] != "would"; i += 2 {
		switch words[i] {
		case "-np":
			prog.NP = atoi(t, words[i+1])
		case "-map-by":
			if err := policy.SetMapBy(words[i+1]); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("advice %q is not one to follow", advice)
		}
	}
}

func TestMapIsDeterministicAndLeavesItsInputAlone(t *testing.T) {
	in, prog := hosts(t, "a b:2 c:3/4"), programs(t, "* 2")
	prog[0].NP = 5
	first, err := Map(in, prog, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := Map(in, prog, Policy{})
		if err != nil || sketch(again) != sketch(first) {
			t.Fatalf("got %s, then %s, %v", sketch(first), sketch(again), err)
		}
	}
	if in[0].Slots != 0 || prog[0].NP != 5 {
		t.Errorf("Map changed its input: %+v, %+v", in[0], prog[0])
	}
}

func TestManyRanksAndHosts(t *testing.T) {
	many := make([]Host, 1024)
	for i := range many {
		many[i] = Host{Name: fmt.Sprintf("n%d", i), Slots: 1 + i%7}
	}
	for _, order := range []Order{BySlot, ByNode} {
		p, err := Map(many, []Program{{NP: 20_000}}, Policy{Order: order})
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, p)
	}
}

func TestSlotsDefaultToCoresWithinMaxSlots(t *testing.T) {
	in := []Host{{Name: "a", Cores: cores(4)}, {Name: "b", Cores: cores(4), MaxSlots: 3}, {Name: "c"}}
	p, err := Map(in, []Program{{}}, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if got := sketch(p); got != "aaaabbbc" {
		t.Errorf("got %s, want aaaabbbc", got)
	}
}
