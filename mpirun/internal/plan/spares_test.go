package plan

import "testing"

func TestAReplacementOfAReplacementIsKnownByTheFirst(t *testing.T) {
	var s Spares
	for _, r := range [][2]int{{4, 1}, {6, 4}, {5, 0}} {
		s.Learn(r[0], r[1])
	}
	for rank, want := range map[int]int{0: 0, 3: 3, 4: 1, 5: 0, 6: 1, -1: -1} {
		if got := s.Original(rank); got != want {
			t.Errorf("rank %d is known by %d, want %d", rank, got, want)
		}
	}
}
