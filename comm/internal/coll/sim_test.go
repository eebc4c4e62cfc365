package coll

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gompi/internal/mem"
)

// A simulated machine, and on how many ranks to try it.
type simulated struct {
	name string
	machine
	ranks []int
}

// The machines on which the built-in table is judged. loopback is TCP between
// processes of one host with a processor each, after figures of a small virtual
// machine: 3.3 us half a round trip, 8 GB/s one way. crowded is the same with
// two processors. network and cluster are hosts with 25 Gbit/s each, and one
// rank or eight to a host.
var machines = []simulated{
	{"loopback", machine{latency: 0.9 * us, overhead: 1.2 * us, copying: 0.12 * ns, reduce: 0.03 * ns},
		[]int{2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64}},
	{"crowded", machine{latency: 0.9 * us, overhead: 1.2 * us, copying: 0.12 * ns, reduce: 0.03 * ns, wake: 2 * us, cores: 2},
		[]int{3, 4, 6, 8, 13, 16}},
	{"network", machine{latency: 12 * us, overhead: 2 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 1},
		[]int{2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64}},
	{"cluster", machine{latency: 6 * us, overhead: 1.5 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 8},
		[]int{16, 64, 24, 128, 40}},
}

// only returns a table with a single choice.
func only(t *testing.T, k kind, alg string) *Table {
	t.Helper()
	table := new(Table)
	if err := table.Tune(catalogue[k].name + ":" + alg); err != nil {
		t.Fatal(err)
	}
	return table
}

// simulate returns the microseconds that a call takes.
func simulate(t *testing.T, m machine, table *Table, k kind, l load) float64 {
	w := newWorld(l.ranks, m, false)
	w.run(t, func(r *rank) error { return r.perform(table, k, l, Op{Kind: mem.Sum}) })
	return w.time() / us
}

// judge compares the table's choice with all algorithms, but for those that send
// more than most messages. With -v it prints their times, so that rules can be made from
// them.
func judge(t *testing.T, table *Table, m machine, k kind, l load, most int) {
	t.Helper()
	const bound = 1.35
	chosen := catalogue[k].algs[table.pick(k, l.ranks, l.bytes(), false)].name
	times, best := "", ""
	var choice, least float64
	for _, a := range catalogue[k].algs {
		if a.pow2 && l.ranks&(l.ranks-1) != 0 || a.cost(l).messages > most && a.name != chosen {
			continue
		}
		x := simulate(t, m, only(t, k, a.name), k, l)
		times += fmt.Sprintf(" %s %.1f", a.name, x)
		if best == "" || x < least {
			best, least = a.name, x
		}
		if a.name == chosen {
			choice = x
		}
	}
	cell := fmt.Sprintf("%s, %d ranks, %d bytes", catalogue[k].name, l.ranks, l.bytes())
	if choice > bound*least {
		t.Errorf("%s: the table chooses %s (%.1f us), %s takes %.1f us", cell, chosen, choice, best, least)
	}
	if testing.Verbose() {
		t.Logf("%s: %s of%s", cell, chosen, times)
	}
}

// Where each algorithm is the fastest, as its comment says.
var wins = []struct {
	k       kind
	alg     string
	machine string
	ranks   int
	bytes   int
}{
	{kBarrier, "dissemination", "loopback", 8, 0},
	{kBarrier, "tree", "crowded", 16, 0},
	{kBcast, "binomial", "loopback", 8, 8},
	{kBcast, "scatter", "loopback", 33, 256 << 10},
	{kBcast, "chain", "network", 7, 64 << 20},
	{kReduce, "binomial", "loopback", 33, 8},
	{kReduce, "halving", "cluster", 64, 1 << 20},
	{kReduce, "chain", "network", 7, 64 << 20},
	{kAllreduce, "rdouble", "loopback", 16, 8},
	{kAllreduce, "direct", "loopback", 3, 8},
	{kAllreduce, "tree", "crowded", 16, 4 << 10},
	{kAllreduce, "halving", "cluster", 64, 1 << 20},
	{kAllreduce, "circulant", "network", 7, 1 << 20},
	{kAllreduce, "ring", "loopback", 3, 4 << 20},
	{kReduceScatter, "tree", "crowded", 13, 8},
	{kReduceScatter, "cubes", "cluster", 64, 4 << 10},
	{kReduceScatter, "halving", "loopback", 8, 8},
	{kReduceScatter, "circulant", "loopback", 33, 1 << 10},
	{kReduceScatter, "ring", "loopback", 3, 4 << 20},
	{kAllgather, "circulant", "loopback", 17, 16 << 10},
	{kAllgather, "bruck", "loopback", 33, 8},
	{kAllgather, "rdouble", "loopback", 8, 4 << 10},
	{kAllgather, "direct", "loopback", 3, 8},
	{kAllgather, "tree", "crowded", 13, 8},
	{kAllgather, "ring", "cluster", 64, 256 << 10},
	{kGather, "binomial", "loopback", 64, 8},
	{kGather, "linear", "loopback", 8, 64 << 10},
	{kScatter, "binomial", "loopback", 64, 8},
	{kScatter, "linear", "loopback", 8, 64 << 10},
	{kAlltoall, "pairwise", "loopback", 8, 64 << 10},
	{kAlltoall, "bruck", "loopback", 33, 8},
	{kScan, "rdouble", "loopback", 16, 8},
	{kScan, "chain", "loopback", 8, 4 << 20},
}

func TestEveryAlgorithmIsTheFastestSomewhere(t *testing.T) {
	won := map[string]bool{}
	for _, w := range wins {
		i := slices.IndexFunc(machines, func(m simulated) bool { return m.name == w.machine })
		if got := fastest(t, machines[i], w.k, w.ranks, w.bytes); got != w.alg {
			t.Errorf("%s on %s, %d ranks, %d bytes: %s is the fastest, want %s", catalogue[w.k].name, w.machine, w.ranks, w.bytes, got, w.alg)
		}
		won[catalogue[w.k].name+w.alg] = true
	}
	for _, c := range catalogue {
		for _, a := range c.algs {
			if !won[c.name+a.name] {
				t.Errorf("%s: nothing says where %s is good", c.name, a.name)
			}
		}
	}
}

// fastest returns the name of the algorithm that takes the least time.
func fastest(t *testing.T, m simulated, k kind, ranks, bytes int) (best string) {
	least := math.Inf(1)
	for _, a := range catalogue[k].algs {
		if a.pow2 && ranks&(ranks-1) != 0 {
			continue
		}
		x := simulate(t, m.machine, only(t, k, a.name), k, load{ranks: ranks, elems: bytes, size: 1})
		if x < least {
			best, least = a.name, x
		}
	}
	return best
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
						if k == kBarrier && n != sizes[0] {
							continue
						}
						judge(t, table, m.machine, k, load{ranks: p, elems: n, size: 1}, 20_000)
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
					judge(t, table, m.machine, k, load{ranks: p, elems: n, size: 1}, 15_000)
				}
			}
		})
	}
}
