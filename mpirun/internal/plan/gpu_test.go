package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gpus returns n GPUs, each of which is near the CPUs of a list.
func gpus(near ...string) []GPU {
	var out []GPU
	for i, list := range near {
		g := GPU{Label: strconv.Itoa(i), Token: strconv.Itoa(i)}
		if list != "" {
			var err error
			if g.CPUs, err = ParseCPUs(list); err != nil {
				panic(err)
			}
		}
		out = append(out, g)
	}
	return out
}

// dgx is a host of eight GPUs, four near each half of its sixteen cores.
func dgx(name string) Host {
	return Host{
		Name: name, Cores: cores(16), Numa: [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}},
		GPUs: gpus("0-7", "0-7", "0-7", "0-7", "8-15", "8-15", "8-15", "8-15"),
	}
}

func TestGPUsOfRanks(t *testing.T) {
	two := Host{Name: "b", Cores: cores(4), GPUs: gpus("0-3", "0-3")}
	few := two
	few.GPUs = two.GPUs[:1]
	slices := Host{Name: "m", Slots: 2, GPUs: []GPU{{Label: "0:0", Token: "MIG-a", Slice: true},
		{Label: "0:1", Token: "MIG-b", Slice: true}, {Label: "1", Token: "1"}}}
	named := Host{Name: "n", GPUs: []GPU{{Label: "3", Token: "GPU-3c"}, {Label: "1", Token: "1"}}}
	tests := []struct {
		name   string
		hosts  []Host
		np     int
		policy Policy
		want   []string // CUDA_VISIBLE_DEVICES of each rank; "" leaves it as it is
		err    string
	}{
		{"no word of GPUs", []Host{dgx("a")}, 3, Policy{}, []string{"", "", ""}, ""},
		{"one each", []Host{dgx("a")}, 3, Policy{GPUs: 1}, []string{"0", "1", "2"}, ""},
		{"as many ranks as GPUs", []Host{two}, 0, Policy{GPUs: 1}, []string{"0", "1"}, ""},
		{"as many ranks as there are GPUs for", []Host{dgx("a"), two}, 0, Policy{GPUs: 2},
			[]string{"0,1", "2,3", "4,5", "6,7", "0,1"}, ""},
		{"several each", []Host{dgx("a")}, 2, Policy{GPUs: 4}, []string{"0,1,2,3", "4,5,6,7"}, ""},
		{"every host counts its own", []Host{two, two}, 4, Policy{GPUs: 1, PerNode: 2},
			[]string{"0", "1", "0", "1"}, ""},
		{"dealt out by node", []Host{two, two}, 4, Policy{GPUs: 1, Order: ByNode}, []string{"0", "0", "1", "1"}, ""},
		{"neighbours share", []Host{two}, 4, Policy{GPUs: 1}, []string{"0", "0", "1", "1"}, ""},
		{"neighbours share as evenly as can be", []Host{two}, 5, Policy{GPUs: 1},
			[]string{"0", "0", "0", "1", "1"}, ""},
		{"all share one", []Host{few}, 3, Policy{GPUs: 1}, []string{"0", "0", "0"}, ""},
		{"tokens are the user's", []Host{named}, 2, Policy{GPUs: 1}, []string{"GPU-3c", "1"}, ""},
		{"tokens are the user's, in his order", []Host{named}, 1, Policy{GPUs: 2}, []string{"GPU-3c,1"}, ""},
		{"slices", []Host{slices}, 3, Policy{GPUs: 1}, []string{"MIG-a", "MIG-b", "1"}, ""},
		{"bound near, all are seen", []Host{named}, 2, Policy{BindTo: BindGPU}, []string{"GPU-3c,1", "GPU-3c,1"}, ""},
		{"too few for each", []Host{dgx("a"), two}, 6, Policy{GPUs: 2}, nil,
			"-gpus-per-rank 2: a has 8 GPUs for 5 ranks: want fewer ranks there (-N), or fewer GPUs for each"},
		{"too many for one", []Host{two}, 1, Policy{GPUs: 3}, nil,
			"-gpus-per-rank 3: b has 2 GPUs for 1 rank: want fewer"},
		{"every host is named", []Host{two, {Name: "c", Slots: 1}, few}, 0, Policy{GPUs: 2}, nil,
			"2: c has 0 GPUs for 1 rank, b has 1 GPU for 1 rank: want"},
		{"none to share", []Host{{Name: "c", Slots: 2}}, 2, Policy{GPUs: 1}, nil, "c has 0 GPUs for 2 ranks"},
		{"sharing refused", []Host{{Name: "b", Slots: 4, GPUs: gpus("", "")}}, 4,
			Policy{GPUs: 1, NoOversubscribe: true}, nil, "b has 2 GPUs for 4 ranks"},
		{"two slices for one process", []Host{slices}, 1, Policy{GPUs: 2}, nil,
			"-gpus-per-rank 2: a process can use one MIG slice only, and the GPUs are cut into slices on m: want 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Map(tt.hosts, []Program{{NP: tt.np}}, tt.policy)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q in it", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				if got := p.Visible(i); got != want {
					t.Errorf("rank %d sees %q, want %q", i, got, want)
				}
			}
			if len(p.Ranks) != len(tt.want) {
				t.Errorf("%d ranks, want %d", len(p.Ranks), len(tt.want))
			}
			checkGPUs(t, p)
		})
	}
}

// checkGPUs checks the guarantees about GPUs.
func checkGPUs(t *testing.T, p *Plan) {
	t.Helper()
	for node, h := range p.Hosts {
		users, last := make([]int, len(h.GPUs)), 0
		for local, rank := range p.Local[node] {
			mine := p.Ranks[rank].GPUs
			if want := min(max(1, p.Policy.GPUs), len(h.GPUs)); len(mine) != want {
				t.Errorf("rank %d has GPUs %v of %d, want %d", rank, mine, len(h.GPUs), want)
			}
			for _, g := range mine {
				if users[g]++; p.Policy.GPUs > 0 && g < last {
					t.Errorf("rank %d has GPU %d, and one before it %d", rank, g, last)
				}
				if last = g; p.Policy.GPUs == 0 && g != local%len(h.GPUs) {
					t.Errorf("rank %d has GPU %d, want that of its local rank %d", rank, g, local)
				}
			}
		}
		if n := len(h.GPUs); n > 0 && slices.Max(users) > slices.Min(users)+1 {
			t.Errorf("%s: ranks of GPUs %v: want them even", h.Name, users)
		}
	}
}

func TestBindingNearGPUs(t *testing.T) {
	threaded := Host{Name: "t", Cores: [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, GPUs: gpus("0-1,4-5", "2-3,6-7")}
	apart := dgx("a")
	apart.GPUs = gpus("8-15", "0-7")
	allowed := dgx("a")
	allowed.Cores = allowed.Cores[6:10]
	unknown := dgx("a")
	unknown.GPUs = gpus("0-7", "")
	tests := []struct {
		name   string
		host   Host
		np     int
		policy Policy
		want   []string // Ranges of each rank; "" is not bound
		note   string
	}{
		{"a share for each GPU", dgx("a"), 8, Policy{GPUs: 1},
			[]string{"0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12-13", "14-15"}, ""},
		{"all near the GPU of one", dgx("a"), 1, Policy{GPUs: 1}, []string{"0-7"}, ""},
		{"without GPUs of their own", dgx("a"), 2, Policy{}, []string{"0-3", "4-7"}, ""},
		{"the GPU decides, not the rank", apart, 2, Policy{GPUs: 1}, []string{"8-15", "0-7"}, ""},
		{"near several", dgx("a"), 2, Policy{GPUs: 4}, []string{"0-7", "8-15"}, ""},
		{"near all", dgx("a"), 1, Policy{GPUs: 8}, []string{"0-15"}, ""},
		{"sharers share the cores, too", apart, 4, Policy{GPUs: 1}, []string{"8-11", "12-15", "0-3", "4-7"}, ""},
		{"hardware threads stay together", threaded, 4, Policy{GPUs: 1}, []string{"0,4", "1,5", "2,6", "3,7"}, ""},
		{"hardware threads as cores", threaded, 8, Policy{GPUs: 1, HWThreads: true},
			[]string{"0", "4", "1", "5", "2", "6", "3", "7"}, ""},
		{"more ranks than cores near", threaded, 6, Policy{GPUs: 1},
			[]string{"0-1,4-5", "0-1,4-5", "0-1,4-5", "2-3,6-7", "2-3,6-7", "2-3,6-7"}, ""},
		{"within what is allowed", allowed, 2, Policy{GPUs: 4}, []string{"6-7", "8-9"}, ""},
		{"within a list", dgx("a"), 2, Policy{GPUs: 4, CPUList: "7-9"}, []string{"7", "8-9"}, ""},
		{"nothing near is allowed", dgx("a"), 2, Policy{GPUs: 4, CPUList: "0-3"}, []string{"0-3", "0-3"}, ""},
		{"nothing near is known", unknown, 2, Policy{GPUs: 1}, []string{"0-7", ""},
			"-bind-to gpu leaves ranks unbound: a does not tell which cores are near"},
		{"no GPU", Host{Name: "c", Cores: cores(2)}, 2, Policy{}, []string{"", ""},
			"-bind-to gpu leaves ranks unbound: c has no GPU"},
		{"no cores", Host{Name: "c", Slots: 1, GPUs: gpus("0")}, 1, Policy{}, []string{""},
			"binds nothing where the cores are not known: c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.policy.BindTo = BindGPU
			p, err := Map([]Host{tt.host}, []Program{{NP: tt.np}}, tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tt.want {
				if got := Ranges(p.Ranks[i].CPUs); got != want {
					t.Errorf("rank %d is bound to %q, want %q", i, got, want)
				}
			}
			if notes := strings.Join(p.Notes, "\n"); (notes != "") != (tt.note != "") ||
				!strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
	if _, err := Map([]Host{dgx("a")}, []Program{{}}, Policy{BindTo: BindGPU, PE: 2}); err == nil {
		t.Error("PE=2 and -bind-to gpu go together")
	}
}

func TestSharingAGPUForOneProcessIsReported(t *testing.T) {
	h := Host{Name: "a", Slots: 4, GPUs: gpus("", "", "")}
	h.GPUs[1].Exclusive, h.GPUs[2].Exclusive = true, true
	for np, want := range map[int]string{3: "", 4: "", 5: "a (gpu 1)", 6: "a (gpu 1,2)"} {
		p, err := Map([]Host{h}, []Program{{NP: np}}, Policy{GPUs: 1})
		if err != nil {
			t.Fatal(err)
		}
		output := strings.Join(slices.DeleteFunc(p.Notes,
			func(n string) bool { return !strings.Contains(n, "EXCLUSIVE_PROCESS") }), "")
		if (output != "") != (want != "") || !strings.Contains(output, "refused: "+want+";") && want != "" {
			t.Errorf("%d ranks: %q, want %q in it", np, output, want)
		}
	}
	p, err := Map([]Host{h}, []Program{{NP: 6}}, Policy{})
	if err != nil || strings.Contains(strings.Join(p.Notes, ""), "EXCLUSIVE") {
		t.Errorf("%v, %q where GPUs are not mentioned", err, p.Notes)
	}
}
