package coll

import (
	"fmt"
	"testing"

	"gompi/internal/mem"
)

// The machines on which the built-in table is judged. loopback is TCP between
// processes of one host with a processor each, after figures of a small virtual
// machine: 3.3 us half a round trip, 8 GB/s one way. crowded is the same with
// two processors. network and cluster are hosts with 25 Gbit/s each, and one
// rank or eight to a host.
var machines = []struct {
	name string
	machine
	ranks []int
}{
	{"loopback", machine{latency: 0.9 * us, overhead: 1.2 * us, copying: 0.12 * ns, reduce: 0.03 * ns},
		[]int{2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64}},
	{"crowded", machine{latency: 0.9 * us, overhead: 1.2 * us, copying: 0.12 * ns, reduce: 0.03 * ns, wake: 2 * us, cores: 2},
		[]int{3, 4, 6, 8, 13, 16}},
	{"network", machine{latency: 12 * us, overhead: 2 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 1},
		[]int{2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64}},
	{"cluster", machine{latency: 6 * us, overhead: 1.5 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 8},
		[]int{16, 64, 24, 128, 40}},
}

// simulate returns the microseconds that a call takes.
func simulate(t *testing.T, m machine, table *Table, k kind, l Load) float64 {
	w := newWorld(l.Ranks, m, false)
	w.run(t, func(r *rank) error { return r.perform(table, k, l, Op{Kind: mem.Sum}) })
	return w.time() / us
}

// judge compares the table's choice with all algorithms, but for those that send
// more than most messages. With -v it prints their times, so that rules can be made from
// them.
func judge(t *testing.T, table *Table, m machine, k kind, l Load, most int) {
	t.Helper()
	const bound = 1.35
	chosen := catalogue[k].algs[table.pick(k, l.Ranks, l.bytes(), false)].Name
	times, best := "", ""
	var choice, least float64
	for _, a := range catalogue[k].algs {
		if a.Pow2 && l.Ranks&(l.Ranks-1) != 0 || a.Cost(l).Messages > most && a.Name != chosen {
			continue
		}
		only := new(Table)
		if err := only.Tune(catalogue[k].name + ":" + a.Name); err != nil {
			t.Fatal(err)
		}
		x := simulate(t, m, only, k, l)
		times += fmt.Sprintf(" %s %.1f", a.Name, x)
		if best == "" || x < least {
			best, least = a.Name, x
		}
		if a.Name == chosen {
			choice = x
		}
	}
	cell := fmt.Sprintf("%s, %d ranks, %d bytes", catalogue[k].name, l.Ranks, l.bytes())
	if choice > bound*least {
		t.Errorf("%s: the table chooses %s (%.1f us), %s takes %.1f us", cell, chosen, choice, best, least)
	}
	if testing.Verbose() {
		t.Logf("%s: %s of%s", cell, chosen, times)
	}
}

func TestTheTableChoosesNearlyTheBestOnSimulatedMachines(t *testing.T) {
	sizes := []int{8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20}
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			for i, p := range m.ranks {
				if i%2 == 1 && !testing.Verbose() || p > 8 && testing.Short() {
					continue // all of them with -v
				}
				table := NewTable()
				table.Crowded = m.cores > 0
				if m.perHost > 0 {
					table.Hosts = p / m.perHost
				}
				for k := range numKinds {
					for _, n := range sizes {
						judge(t, table, m.machine, k, Load{Ranks: p, Elems: n, Size: 1}, 20_000)
					}
				}
			}
		})
	}
}

func TestTheTableChoosesNearlyTheBestForAThousandRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, m := range machines[2:] {
		t.Run(m.name, func(t *testing.T) {
			table, p := NewTable(), 1000
			table.Hosts = p / m.perHost
			for _, k := range []kind{kBarrier, kBcast, kReduce, kAllreduce, kGather} {
				for _, n := range []int{8, 64 << 10} {
					judge(t, table, m.machine, k, Load{Ranks: p, Elems: n, Size: 1}, 15_000)
				}
			}
		})
	}
}
