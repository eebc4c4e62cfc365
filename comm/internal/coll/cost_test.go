package coll

import (
	"testing"

	"gompi/internal/mem"
)

// costOf measures a call of k with the given table.
func costOf(t *testing.T, table *Table, k kind, l Load) Cost {
	w := newWorld(l.Ranks, steps, false)
	w.run(t, func(r *rank) error { return r.perform(table, k, l, Op{Kind: mem.Sum}) })
	c := Cost{Rounds: int(w.time())}
	for _, r := range w.ranks {
		c.Messages += r.messages
		c.Bytes += r.bytes
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
			t.Run(c.name+"/"+a.Name, func(t *testing.T) {
				table := new(Table)
				if err := table.Tune(c.name + ":" + a.Name); err != nil {
					t.Fatal(err)
				}
				for _, p := range sizes {
					if a.Pow2 && p&(p-1) != 0 {
						continue
					}
					for i, n := range []int{0, 1, p - 1, p, 1000, 4 << 20} {
						l := Load{Ranks: p, Root: (i * 3) % p, Elems: n, Size: 1}
						if got, want := costOf(t, table, kind(k), l), a.Cost(l); got != want {
							t.Errorf("%d ranks, %d bytes, root %d: %+v, want %+v", p, n, l.Root, got, want)
						}
					}
				}
			})
		}
	}
}
