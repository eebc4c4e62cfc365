package mem

import "testing"

func TestSharesAddUpToTheWhole(t *testing.T) {
	for _, unit := range []int{1, 4, 64} {
		for _, parts := range []int{1, 2, 3, 7, 64} {
			for _, n := range []int{0, 1, 3, 63, 64, 65, 1000, 4096, 100_003} {
				end, longest := 0, 0
				for i := range parts {
					lo, hi := Share(n, parts, unit, i)
					switch longest = max(longest, hi-lo); {
					case lo != end || hi < lo:
						t.Errorf("%d elements, part %d of %d by %d: [%d, %d), want it to begin at %d", n, i, parts,
							unit, lo, hi, end)
					case lo < n && lo%unit != 0:
						t.Errorf("%d elements, part %d of %d by %d: begins at %d", n, i, parts, unit, lo)
					case hi < n && hi-lo != longest:
						t.Errorf("%d elements, part %d of %d by %d: %d elements, others have %d", n, i, parts, unit,
							hi-lo, longest)
					}
					end = hi
				}
				if fair := (n + parts - 1) / parts; end != n || longest >= fair+unit {
					t.Errorf("%d elements in %d parts by %d: end at %d, the longest has %d", n, parts, unit,
						end, longest)
				}
				if lo, hi := Share(n, parts, unit, parts); lo != n || hi != n {
					t.Errorf("%d elements, beyond %d parts by %d: [%d, %d), want none", n, parts, unit, lo, hi)
				}
			}
		}
	}
}
