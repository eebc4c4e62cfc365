package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/hostfile"
)

func TestRankfilesPlaceAndBind(t *testing.T) {
	hosts := func() []Host {
		a, b := twoByFour(), twoByFour()
		a.Name, b.Name = "a", "b"
		return []Host{a, b}
	}
	f, err := ParseRankfile("ranks", []byte(`# Open MPI's own example, and what else it allows
rank 0=b slot=1:0-2
rank 1=a slot=0:0,1
rank 3 = +n1 slot=0:*   # relative
rank 2=a slot=1-2
rank 4=a
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Map(hosts(), []Program{{NP: 2}, {}}, Policy{Rankfile: f})
	if err != nil {
		t.Fatal(err)
	}
	h := p.Hosts[0]
	cpus := func(cores ...int) []int {
		var out []int
		for _, c := range cores {
			out = append(out, h.Cores[c]...)
		}
		slices.Sort(out)
		return out
	}
	want := []struct {
		node, prog int
		cpus       []int
	}{{1, 0, cpus(4, 5, 6)}, {0, 0, cpus(0, 1)}, {0, 1, cpus(1, 2)}, {1, 1, cpus(0, 1, 2, 3)}, {0, 1, nil}}
	for i, w := range want {
		if r := p.Ranks[i]; r.Node != w.node || r.Prog != w.prog || !slices.Equal(r.CPUs, w.cpus) {
			t.Errorf("rank %d: %+v, want %+v", i, r, w)
		}
	}
	if list := f.HostList(); list != "" {
		t.Errorf("host list %q of a file with a relative host", list)
	}
}

func TestRankfilesSayTheirHosts(t *testing.T) {
	f, err := ParseRankfile("f", []byte("rank 0=b\nrank 1=a\nrank 2=b\n"))
	if err != nil || f.HostList() != "b:2,a:1" {
		t.Errorf("%v, %v", f, err)
	}
	f, err = ParseRankfile("f", []byte("rank 0=2001:db8::5\nrank 1=[2001:db8::5]\nrank 2=fe80::1%eth0\n"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := hostfile.ParseList("-H", f.HostList())
	if want := []hostfile.Host{{Name: "2001:db8::5", Slots: 2}, {Name: "fe80::1%eth0", Slots: 1}}; err != nil ||
		!slices.Equal(list.Hosts, want) {
		t.Errorf("%q: %+v, %v; want %+v", f.HostList(), list.Hosts, err, want)
	}
}

// A rankfile may call a host by its full name, by the first label of that, and by both.
func TestRankfilesNameHostsAsHostfilesDo(t *testing.T) {
	f, err := ParseRankfile("f", []byte("rank 0=a\nrank 1=a.cluster\nrank 2=b.cluster\nrank 3=A\n"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := hostfile.ParseList("-H", f.HostList())
	if err != nil || len(own.Hosts) != 2 || own.Hosts[0].Slots != 3 {
		t.Fatalf("%q: %+v, %v; want a with 3 slots, and b", f.HostList(), own.Hosts, err)
	}
	for _, hosts := range [][]Host{
		{{Name: own.Hosts[0].Name}, {Name: own.Hosts[1].Name}},
		{{Name: "a.cluster"}, {Name: "b"}},
	} {
		p, err := Map(hosts, []Program{{}}, Policy{Rankfile: f})
		if err != nil {
			t.Fatal(err)
		}
		if want := [][]int{{0, 1, 3}, {2}}; !slices.EqualFunc(p.Local, want, slices.Equal) {
			t.Errorf("ranks of %+v: %v, want %v", hosts, p.Local, want)
		}
	}
}

func TestWrongRankfilesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "f: want lines as in: rank 0=node01 slot=0-3",
		"rank 0\n":                             `f:1: "rank 0": want rank N=HOST slot=CORES`,
		"rank x=a":                             "f:1: ",
		"rank -1=a":                            "f:1: ",
		"rank 0=+nx":                           "f:1: ",
		"rank 0=a,b":                           "f:1: ",
		"rank 0=a:2":                           "f:1: ",
		"rank 0=a slots=1":                     "f:1: ",
		"rank 0=a slot=3-1":                    "slot=3-1: want cores",
		"rank 0=a slot=x:1":                    "slot=x:1: want cores",
		"rank 1=a":                             "f:1: rank 1: want each rank from 0 to 0 once",
		"rank 0=a\n\nrank 0=b\n":               "f:3: rank 0: want each rank from 0 to 1 once",
		"rank 0=c":                             "f:1: rank 0: no such host: want one of a",
		"rank 0=+n7":                           "f:1: rank 0: no such host",
		"rank 0=a slot=2:0":                    "f:1: rank 0: slot=2:0: a has 0 cores in package 2",
		"rank 0=a slot=0:4":                    "f:1: rank 0: slot=0:4: a has 4 cores in package 0",
		"rank 0=a slot=8":                      "f:1: rank 0: slot=8: a has 8 cores",
		strings.Repeat("rank 0=a slot=0\n", 2): "f:2: rank 0: want each",
	} {
		f, err := ParseRankfile("f", []byte(text))
		if err == nil {
			h := twoByFour()
			h.Name = "a"
			_, err = Map([]Host{h}, []Program{{}}, Policy{Rankfile: f})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestRoundsGoOnAtTheFirstHost(t *testing.T) {
	hosts := []Host{{Name: "a", Slots: 2}, {Name: "b", Slots: 2, MaxSlots: 3}, {Name: "c", Slots: 8}}
	for np, want := range map[int]string{
		0: "[0 0 1 1 2 2]", 3: "[0 0 1]", 6: "[0 0 1 1 2 2]", 9: "[0 0 1 1 2 2 0 0 1]", 12: "[0 0 1 1 2 2 0 0 1 2 2 0]",
	} {
		p, err := Map(hosts, []Program{{NP: np}}, Policy{PerNode: 2, Wrap: true})
		if err != nil || fmt.Sprint(nodes(p)) != want {
			t.Errorf("-ppn 2 -np %d: %v, %v, want %s", np, p, err, want)
		}
	}
	a, c := []hostfile.Share{{Host: 0}}, []hostfile.Share{{Host: 2}}
	for want, programs := range map[string][]Program{
		"[0 0 1 1 2 2 0 0]": {{NP: 1}, {NP: 1}, {NP: 1}, {NP: 1}, {NP: 1}, {NP: 1}, {NP: 1}, {NP: 1}},
		"[0 0 1 1 2 2]":     {{NP: 3}, {NP: 3}},
		"[0 2 2 2 2 2 0]":   {{NP: 1}, {NP: 1, Hosts: c}, {NP: 4, Hosts: c}, {NP: 1, Hosts: a}},
	} {
		p, err := Map(hosts, programs, Policy{PerNode: 2, Wrap: true})
		if err != nil || fmt.Sprint(nodes(p)) != want {
			t.Errorf("-ppn 2 and %d programs: %v, %v, want %s", len(programs), p, err, want)
		}
	}
	if _, err := Map(hosts[1:2], []Program{{NP: 4}}, Policy{PerNode: 2, Wrap: true}); err == nil {
		t.Error("more ranks than max_slots allows were placed")
	}
}

func FuzzParseRankfile(f *testing.F) {
	for _, s := range []string{"rank 0=a slot=1:0-2\n", "rank 0=+n0 slot=0:*,1:1\n# x\nrank 1=b",
		"rank 0 = a slot = 0,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseRankfile("f", []byte(text))
		if err != nil {
			return
		}
		h := twoByFour()
		h.Name = "a"
		if p, err := Map([]Host{h}, []Program{{}}, Policy{Rankfile: file}); err == nil &&
			len(p.Ranks) != len(file.ranks) {
			t.Errorf("%q: %d ranks of %d", text, len(p.Ranks), len(file.ranks))
		}
	})
}
