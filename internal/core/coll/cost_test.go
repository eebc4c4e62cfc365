package coll

import (
	"math/bits"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A load is the size of one call. elems is the whole vector for Bcast, Reduce,
// Allreduce and Scan, and one rank's block for the others: what gompi-bench
// calls bytes.
type load struct{ ranks, root, elems, size int }

func (l load) bytes() int64 { return int64(l.elems) * int64(l.size) }

// A cost is what an algorithm spends on a call.
type cost struct {
	rounds   int   // steps one after the other; what is started together counts once
	messages int   // sent by all ranks
	bytes    int64 // sent by all ranks
}

func (c cost) plus(d cost) cost {
	return cost{c.rounds + d.rounds, c.messages + d.messages, c.bytes + d.bytes}
}

// costs says what each algorithm spends, as its comment does.
var costs = map[calls.Kind]map[path.Algorithm]func(load) cost{
	calls.Barrier: {
		path.Dissemination: func(l load) cost {
			q := depth(l.ranks)
			return cost{q, q * l.ranks, 0}
		},
		path.Binomial: func(l load) cost { return upAndDown(l.ranks, 0) },
	},
	calls.Bcast: {
		path.Binomial: func(l load) cost {
			n := l.ranks - 1
			return cost{tree{l.ranks, l.root}.height(), n, int64(n) * l.bytes()}
		},
		path.ScatterAllgather: func(l load) cost {
			t := tree{l.ranks, l.root}
			n := int64(l.size) * int64(t.volume(evenly(l.elems, l.ranks)))
			return cost{t.height(), l.ranks - 1, n}.plus(circulantCost(l, l.bytes()))
		},
		path.Chain: func(l load) cost {
			n := l.ranks - 1
			k := chunks(l.elems, segment(l.elems, l.size, n-1))
			return cost{n - 1 + k, n * k, int64(n) * l.bytes()}
		},
	},
	calls.Reduce: {
		path.Binomial: func(l load) cost {
			n := l.ranks - 1
			return cost{tree{l.ranks, l.root}.height(), n, int64(n) * l.bytes()}
		},
		path.Halving: func(l load) cost { return cubesCost(l).plus(collectCost(l)) },
		path.Chain: func(l load) cost {
			n := l.ranks - 1
			k := chunks(l.elems, segment(l.elems, l.size, n-1))
			return cost{n - 1 + k, n * k, int64(n) * l.bytes()}
		},
	},
	calls.Allreduce: {
		path.RecursiveDoubling: func(l load) cost {
			m := doublingMessages(l.ranks)
			return cost{depth(l.ranks), m, int64(m) * l.bytes()}
		},
		path.Binomial: func(l load) cost { return upAndDown(l.ranks, l.bytes()) },
		path.Direct: func(l load) cost {
			m := l.ranks * (l.ranks - 1)
			return cost{1, m, int64(m) * l.bytes()}
		},

		path.Halving: func(l load) cost { c := cubesCost(l); return c.plus(c) },
		path.Circulant: func(l load) cost {
			c := circulantCost(l, l.bytes())
			return c.plus(c)
		},
	},
	calls.ReduceScatter: {

		path.Cubes: reduceScatterCubesCost,

		path.Circulant: func(l load) cost { return circulantCost(l, int64(l.ranks)*l.bytes()) },
	},
	calls.Allgather: {
		path.Circulant: func(l load) cost { return circulantCost(l, int64(l.ranks)*l.bytes()) },
		path.Direct: func(l load) cost {
			m := l.ranks * (l.ranks - 1)
			return cost{1, m, int64(m) * l.bytes()}
		},

		path.Ring: func(l load) cost {
			p := l.ranks
			return cost{p - 1, p * (p - 1), int64(p*(p-1)) * l.bytes()}
		},
	},
	calls.Gather: {
		path.Binomial: func(l load) cost {
			t := tree{l.ranks, l.root}
			return cost{t.height(), l.ranks - 1, int64(t.volume(evenly(l.ranks, l.ranks))) * l.bytes()}
		},
		path.Linear: func(l load) cost {
			n := l.ranks - 1
			return cost{1, n, int64(n) * l.bytes()}
		},
	},
	calls.Scatter: {
		path.Binomial: func(l load) cost {
			t := tree{l.ranks, l.root}
			return cost{t.height(), l.ranks - 1, int64(t.volume(evenly(l.ranks, l.ranks))) * l.bytes()}
		},
		path.Linear: func(l load) cost {
			n := l.ranks - 1
			return cost{batches(n), n, int64(n) * l.bytes()}
		},
	},
	calls.Alltoall: {
		path.Pairwise: func(l load) cost {
			n, w := l.ranks*(l.ranks-1), window(l.elems*l.size, false)
			return cost{(matches(l.ranks) + w - 1) / w, n, int64(n) * l.bytes()}
		},
		path.Bruck: func(l load) cost {
			moved := 0
			for d := 1; d < l.ranks; d *= 2 {
				moved += l.ranks * bruckBlocks(l.ranks, d)
			}
			q := depth(l.ranks)
			return cost{q, q * l.ranks, int64(moved) * l.bytes()}
		},
	},
	calls.Scan: {
		path.RecursiveDoubling: func(l load) cost {
			m := 0
			for d := 1; d < l.ranks; d *= 2 {
				m += l.ranks - d
			}
			return cost{depth(l.ranks), m, int64(m) * l.bytes()}
		},
		path.Chain: func(l load) cost {
			n := l.ranks - 1
			k := chunks(l.elems, segment(l.elems, l.size, n-1))
			return cost{n - 1 + k, n * k, int64(n) * l.bytes()}
		},
	},
}

// upAndDown is the cost of messages of n bytes up the binomial tree of rank 0, and down again.
func upAndDown(ranks int, n int64) cost {
	h, m := (tree{ranks, 0}).height(), ranks-1
	c := cost{h, m, int64(m) * n}
	return c.plus(c)
}

// circulantCost is the cost of one pass over blocks of the given total. In the
// round of skips a > b every rank sends a-b blocks in one message, and a-b-1 of
// the ranks need a second one: (q+1)(p-1) in all.
func circulantCost(l load, bytes int64) cost {
	p, q := l.ranks, depth(l.ranks)
	return cost{q, (q + 1) * (p - 1), int64(p-1) * bytes}
}

// cubesCost is the cost of reduceCubes, and of gatherCubes.
func cubesCost(l load) cost {
	c := cost{bytes: int64(l.ranks-1) * l.bytes()}
	for larger, r := none, 0; r < l.ranks; {
		_, own, _ := cubesOf(r, l.ranks)
		c.rounds = max(c.rounds, own.dim)
		c.messages += own.size() * own.dim
		if larger != none {
			c.messages += larger.size()
		}
		larger, r = own, r+own.size()
	}
	return c
}

// collectCost is the cost of collectCubes.
func collectCost(l load) cost {
	_, c, _ := cubesOf(0, l.ranks)
	sum, goal := cost{rounds: c.dim, messages: c.size() - 1}, l.root
	if goal >= c.size() {
		sum, goal = cost{c.dim + 1, c.size(), l.bytes()}, 0
	}
	for r := range c.size() {
		if r != goal { // it sends once, when it parts from goal
			lo, hi := interval(l.elems, r, bits.Len(uint(r^goal)))
			sum.bytes += int64(hi-lo) * int64(l.size)
		}
	}
	return sum
}

func reduceScatterCubesCost(l load) cost {
	p, b := l.ranks, evenly(l.elems*l.ranks, l.ranks)
	sum := cubesCost(load{ranks: p, elems: b.n, size: l.size})
	_, c, _ := cubesOf(0, p)
	moved := 0
	for j := range c.size() {
		for i := range p {
			first, last := b.bounds(i)
			if lo, hi := common(first, last, j, b.n, c); lo < hi && i != j {
				sum.messages++
				moved += hi - lo
			}
		}
	}
	if moved > 0 {
		sum.rounds++
	}
	sum.bytes += int64(moved) * int64(l.size)
	return sum
}

// costOf measures a call of k by an algorithm.
func costOf(t *testing.T, alg path.Algorithm, k calls.Kind, l load) cost {
	w := newWorld(l.ranks, false)
	w.run(t, func(r *rank) error { return r.perform(alg, k, l, call.Op{Kind: mem.Sum}) })
	var c cost
	for _, r := range w.ranks {
		c.rounds = max(c.rounds, r.step)
		c.messages += r.messages
		c.bytes += r.bytes
	}
	return c
}

func TestCostsAreAsTheTableSays(t *testing.T) {
	sizes := []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 33, 64}
	if testing.Short() {
		sizes = sizes[:9]
	}
	for k, algs := range costs {
		if len(algs) != len(path.Methods(k)) {
			t.Errorf("%v: the costs of %d algorithms: want those of %d", k, len(algs), len(path.Methods(k)))
		}
		for _, m := range path.Methods(k) {
			t.Run(k.String()+"/"+m.Algorithm.String(), func(t *testing.T) {
				for _, p := range sizes {
					for i, n := range []int{0, 1, p - 1, p, 1000, 4 << 20} {
						l := load{ranks: p, root: (i * 3) % p, elems: n, size: 1}
						if got, want := costOf(t, m.Algorithm, k, l), algs[m.Algorithm](l); got != want {
							t.Errorf("%d ranks, %d bytes, root %d: %+v, want %+v", p, n, l.root, got, want)
						}
					}
				}
			})
		}
	}
}

// doublingMessages counts, for each step, the ranks whose neighbour block is not
// empty: each receives one message.
func doublingMessages(p int) (m int) {
	for d := 1; d < p; d *= 2 {
		for r := range p {
			if (r/d^1)*d < p {
				m++
			}
		}
	}
	return m
}

// batches returns in how many batches n messages go.
func batches(n int) int { return (n + batch - 1) / batch }

// height returns the longest way from a rank to the root, in messages.
func (t tree) height() int {
	h := 0
	for r := range t.size {
		hops := 0
		for ; r != t.root; r = t.parent(r) {
			hops++
		}
		h = max(h, hops)
	}
	return h
}

// volume returns how many elements travel when every rank's block goes through
// the tree between it and the root.
func (t tree) volume(b blocks) int {
	n := 0
	for r := range t.size {
		if r == t.root {
			continue
		}
		lo, hi := t.span(r)
		for i := lo; i < hi; i++ {
			n += b.count(i)
		}
	}
	return n
}
