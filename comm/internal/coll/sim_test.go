package coll

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// A simulated machine, and on how many ranks to try it.
type simulated struct {
	name string
	machine
	ranks []int
}

// The machines on which the built-in rules are judged: hosts with 25 Gbit/s each, and one
// rank or eight to a host. Processing a message costs what it did over TCP on a small virtual
// machine: 3.3 us half a round trip, 8 GB/s one way.
var machines = []simulated{
	{"network", machine{latency: 12 * us, overhead: 2 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 1},
		[]int{2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64}},
	{"cluster", machine{latency: 6 * us, overhead: 1.5 * us, copying: 0.1 * ns, perByte: 0.32 * ns, reduce: 0.03 * ns, perHost: 8},
		[]int{16, 64, 24, 128, 40}},
}

// An oversubscribed host has few processors for many ranks. With each message one of them wakes.
var oversubscribed = simulated{"oversubscribed", machine{latency: 1 * us, overhead: 8 * us, copying: 0.1 * ns, reduce: 0.03 * ns, cpus: 2}, []int{64, 100, 512}}

// simulate returns the microseconds that a call takes.
func simulate(t *testing.T, m machine, alg path.Algorithm, k call.Kind, l load) float64 {
	w := newWorld(l.ranks, m, false)
	w.run(t, func(r *rank) error { return r.perform(alg, k, l, call.Op{Kind: mem.Sum}) })
	return w.time() / us
}

// judge compares the rules' choice with all algorithms, but for those that send
// more than most messages. With -v it prints their times, so that rules can be made from
// them. It leaves out what goes hierarchically on hosts that differ in their number of ranks: there
// most collectives go by messages.
func judge(t *testing.T, r *path.Rules, m machine, k call.Kind, l load, most int) {
	t.Helper()
	const bound = 1.35
	o := &call.Call{Fingerprint: call.Fingerprint{Kind: k, Type: mem.U8, Count: int64(l.elems)}}
	switch k {
	case call.ReduceScatter:
		o.Kind = call.ReduceScatterBlock
	case call.Alltoall:
		o.Count *= int64(l.ranks)
	}
	p := path.New(path.Topology{Ranks: l.ranks, Hier: m.perHost > 1, Packed: true}, r).For(o)
	if p.Via == path.Hier {
		return
	}
	chosen := p.Algorithm
	times, best := "", path.None
	var choice, least float64
	for _, a := range path.Methods(k) {
		if costs[k][a.Algorithm](l).messages > most && a.Algorithm != chosen {
			continue
		}
		x := simulate(t, m, a.Algorithm, k, l)
		times += fmt.Sprintf(" %v %.1f", a.Algorithm, x)
		if best == path.None || x < least {
			best, least = a.Algorithm, x
		}
		if a.Algorithm == chosen {
			choice = x
		}
	}
	cell := fmt.Sprintf("%v, %d ranks, %d bytes", k, l.ranks, l.bytes())
	if choice > bound*least {
		t.Errorf("%s: the rules choose %v (%.1f us), %v takes %.1f us", cell, chosen, choice, best, least)
	}
	if testing.Verbose() {
		t.Logf("%s: %v of%s", cell, chosen, times)
	}
}

// Where each algorithm is the fastest, as its comment says.
var wins = []struct {
	k       call.Kind
	alg     path.Algorithm
	machine string
	ranks   int
	bytes   int
}{
	{call.Barrier, path.Dissemination, "network", 8, 0},
	{call.Barrier, path.Binomial, "oversubscribed", 512, 0},
	{call.Bcast, path.Binomial, "network", 7, 8},
	{call.Bcast, path.ScatterAllgather, "network", 64, 1 << 20},
	{call.Bcast, path.Chain, "network", 7, 64 << 20},
	{call.Reduce, path.Binomial, "network", 7, 8},
	{call.Reduce, path.Halving, "cluster", 64, 1 << 20},
	{call.Reduce, path.Chain, "network", 7, 64 << 20},
	{call.Allreduce, path.RecursiveDoubling, "network", 64, 8},
	{call.Allreduce, path.Binomial, "oversubscribed", 512, 8},
	{call.Allreduce, path.Direct, "network", 5, 8},
	{call.Allreduce, path.Halving, "cluster", 64, 1 << 20},
	{call.Allreduce, path.Circulant, "network", 7, 1 << 20},
	{call.ReduceScatter, path.Cubes, "cluster", 64, 4 << 10},
	{call.ReduceScatter, path.Circulant, "network", 7, 16 << 10},
	{call.Allgather, path.Circulant, "network", 33, 4 << 10},
	{call.Allgather, path.Direct, "network", 5, 4 << 10},
	{call.Allgather, path.Ring, "cluster", 64, 256 << 10},
	{call.Gather, path.Binomial, "cluster", 64, 8},
	{call.Gather, path.Linear, "cluster", 16, 16 << 10},
	{call.Scatter, path.Binomial, "cluster", 64, 8},
	{call.Scatter, path.Linear, "network", 8, 4 << 10},
	{call.Alltoall, path.Pairwise, "network", 64, 1 << 20},
	{call.Alltoall, path.Bruck, "cluster", 64, 8},
	{call.Scan, path.RecursiveDoubling, "network", 64, 8},
	{call.Scan, path.Chain, "cluster", 24, 4 << 20},
}

func TestEveryAlgorithmIsTheFastestSomewhere(t *testing.T) {
	type win struct {
		k   call.Kind
		alg path.Algorithm
	}
	won := map[win]bool{}
	all := append(slices.Clone(machines), oversubscribed)
	for _, w := range wins {
		i := slices.IndexFunc(all, func(m simulated) bool { return m.name == w.machine })
		if got := fastest(t, all[i], w.k, w.ranks, w.bytes); got != w.alg {
			t.Errorf("%v on %s, %d ranks, %d bytes: %v is the fastest, want %v", w.k, w.machine, w.ranks, w.bytes, got, w.alg)
		}
		won[win{w.k, w.alg}] = true
	}
	for k := range costs {
		for _, m := range path.Methods(k) {
			if !won[win{k, m.Algorithm}] {
				t.Errorf("%v: nothing says where %v is good", k, m.Algorithm)
			}
		}
	}
}

// fastest returns the algorithm that takes the least time.
func fastest(t *testing.T, m simulated, k call.Kind, ranks, bytes int) (best path.Algorithm) {
	least := math.Inf(1)
	for _, a := range path.Methods(k) {
		x := simulate(t, m.machine, a.Algorithm, k, load{ranks: ranks, elems: bytes, size: 1})
		if x < least {
			best, least = a.Algorithm, x
		}
	}
	return best
}

func TestRulesChooseNearlyTheBestOnSimulatedMachines(t *testing.T) {
	sizes := []int{8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20}
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			for i, p := range m.ranks {
				if i%2 == 1 && !testing.Verbose() || p > 8 && testing.Short() {
					continue // all of them with -v
				}
				r := &path.Rules{Hosts: p / m.perHost}
				for k := range costs {
					for _, n := range sizes {
						if k == call.Barrier && n != sizes[0] {
							continue
						}
						judge(t, r, m.machine, k, load{ranks: p, elems: n, size: 1}, 20_000)
					}
				}
			}
		})
	}
}

func TestRulesChooseFewMessagesWhereProcessorsAreShared(t *testing.T) {
	r := &path.Rules{Oversubscribed: true, Hosts: 1}
	for _, p := range oversubscribed.ranks {
		if p > 100 && testing.Short() {
			continue
		}
		for _, k := range []call.Kind{call.Barrier, call.Bcast, call.Reduce, call.Allreduce} {
			judge(t, r, oversubscribed.machine, k, load{ranks: p, elems: 8, size: 1}, 20_000)
		}
	}
}

func TestRulesChooseNearlyTheBestForAThousandRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, m := range machines {
		t.Run(m.name, func(t *testing.T) {
			const p = 1000
			r := &path.Rules{Hosts: p / m.perHost}
			for _, k := range []call.Kind{call.Barrier, call.Bcast, call.Reduce, call.Allreduce, call.Gather} {
				for _, n := range []int{8, 64 << 10} {
					judge(t, r, m.machine, k, load{ranks: p, elems: n, size: 1}, 15_000)
				}
			}
		})
	}
}
