package comms

import (
	"slices"
	"testing"

	"gompi/comm/internal/mpi/abi"
)

func TestDimensionsAreEven(t *testing.T) {
	for _, c := range []struct {
		n, k int
		want []int
	}{
		{6, 2, []int{3, 2}}, {7, 2, []int{7, 1}}, {12, 3, []int{3, 2, 2}}, {16, 2, []int{4, 4}}, {1, 3, []int{1, 1, 1}},
		{48, 2, []int{8, 6}}, {36, 3, []int{4, 3, 3}}, {100000, 3, []int{50, 50, 40}}, {30030, 4, []int{15, 14, 13, 11}},
		{5040, 3, []int{21, 16, 15}}, {5616, 4, []int{13, 9, 8, 6}}, {999999, 2, []int{1001, 999}}, {1 << 20, 20, slices.Repeat([]int{2}, 20)},
	} {
		if got := evenly(c.n, c.k); !slices.Equal(got, c.want) {
			t.Errorf("%d in %d dimensions: %v, want %v", c.n, c.k, got, c.want)
		}
	}
}

func TestGrids(t *testing.T) {
	g := &cart{dims: []int{2, 3}, periods: []bool{false, true}}
	for r := range 6 {
		if got, ok := g.rank(g.coords(r)); got != r || !ok {
			t.Errorf("rank %d is at %v, where %d is", r, g.coords(r), got)
		}
	}
	for _, c := range []struct{ rank, dim, by, want int }{
		{0, 0, 1, 3}, {3, 0, 1, abi.ProcNull}, {0, 0, -1, abi.ProcNull}, {0, 1, -1, 2}, {5, 1, 1, 3}, {1, 1, 6, 1},
	} {
		if got := g.shifted(c.rank, c.dim, c.by); got != c.want {
			t.Errorf("from rank %d by %d in dimension %d: %d, want %d", c.rank, c.by, c.dim, got, c.want)
		}
	}
}
