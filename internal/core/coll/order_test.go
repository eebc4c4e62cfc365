package coll

import (
	"testing"

	"gompi/internal/mem"
)

// A Combination has the same bits as the reference, leaves the operands as they are, and
// works in as many spare vectors as the tree is high.
func TestCombinationAgreesWithReference(t *testing.T) {
	for ranks := 1; ranks <= 17; ranks++ {
		o := newOracle(ranks)
		for _, s := range orderedSums {
			a, spares := o.ask(s, 5), make([]mem.Buffer, depth(ranks))
			for k := range spares {
				spares[k] = alloc(s.typ, 5)
			}
			before := make([]mem.Buffer, ranks)
			for r := range before {
				before[r] = clone(a.in[r])
			}
			for _, scan := range []bool{false, true} {
				c := Combination{Op: s.op, Scan: scan,
					Operand: func(i int) mem.Buffer { return a.in[i] },
					Spare:   func(_ mem.Buffer, _, k int) mem.Buffer { return spares[k] }}
				for hi := 1; hi <= ranks; hi++ {
					want := a.upto[hi-1]
					if !scan {
						want = a.tree(0, hi)
						a.finish(want, hi)
					}
					got, err := c.Of(alloc(s.typ, 5), 0, hi)
					if got = clone(got); err == nil {
						err = s.op.Finish(got, hi)
					}
					if d := differ(got, want); err != nil || d != "" {
						t.Fatalf("%s of %d, scan %v: %v %s", s.name, hi, scan, err, d)
					}
				}
			}
			for r, b := range before {
				if d := differ(a.in[r], b); d != "" {
					t.Fatalf("%s: operand %d was changed: %s", s.name, r, d)
				}
			}
		}
	}
}
