package coll

import (
	"testing"

	"gompi/internal/mem"
)

// costOf measures a call of k with the given table.
func costOf(t *testing.T, table *Table, k kind, l load) cost {
	w := newWorld(l.ranks, steps, false)
	w.run(t, func(r *rank) error { return r.perform(table, k, l, Op{Kind: mem.Sum}) })
	c := cost{rounds: int(w.time())}
	for _, r := range w.ranks {
		c.messages += r.messages
		c.bytes += r.bytes
	}
	return c
}

func TestCostsAreAsTheTablesSay(t *testing.T) {
	sizes := []int{2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 33, 64}
	if testing.Short() {
		sizes = sizes[:9]
	}
	for k, c := range catalogue {
		for _, a := range c.algs {
			t.Run(c.name+"/"+a.name, func(t *testing.T) {
				table := only(t, kind(k), a.name)
				for _, p := range sizes {
					if a.pow2 && p&(p-1) != 0 {
						continue
					}
					for i, n := range []int{0, 1, p - 1, p, 1000, 4 << 20} {
						l := load{ranks: p, root: (i * 3) % p, elems: n, size: 1}
						if got, want := costOf(t, table, kind(k), l), a.cost(l); got != want {
							t.Errorf("%d ranks, %d bytes, root %d: %+v, want %+v", p, n, l.root, got, want)
						}
					}
				}
			})
		}
	}
}
