package topology

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gompi/internal/core"
)

func TestDimensionsAreEven(t *testing.T) {
	for _, c := range []struct {
		n         int
		dims, got []int
	}{
		{6, []int{0, 0}, []int{3, 2}}, {7, []int{0, 0}, []int{7, 1}}, {12, []int{0, 0, 0}, []int{3, 2, 2}},
		{16, []int{0, 0}, []int{4, 4}}, {1, []int{0, 0, 0}, []int{1, 1, 1}}, {48, []int{0, 0}, []int{8, 6}},
		{36, []int{0, 0, 0}, []int{4, 3, 3}}, {100000, []int{0, 0, 0}, []int{50, 50, 40}},
		{30030, []int{0, 0, 0, 0}, []int{15, 14, 13, 11}}, {5040, []int{0, 0, 0}, []int{21, 16, 15}},
		{5616, []int{0, 0, 0, 0}, []int{13, 9, 8, 6}}, {999999, []int{0, 0}, []int{1001, 999}},
		{1 << 20, make([]int, 20), slices.Repeat([]int{2}, 20)},
		{12, []int{0, 2, 0}, []int{3, 2, 2}}, {12, []int{0, 3, 0, 1}, []int{2, 3, 2, 1}},
		{24, []int{1, 0, 0}, []int{1, 6, 4}},
		{6, []int{2, 3}, []int{2, 3}}, {1, nil, nil}, {7, []int{0}, []int{7}},
		{1<<31 - 1, []int{0, 0}, []int{1<<31 - 1, 1}},
	} {
		dims := slices.Clone(c.dims)
		if err := Dims(c.n, dims); err != nil || !slices.Equal(dims, c.got) {
			t.Errorf("%d in %v: %v, %v, want %v", c.n, c.dims, dims, err, c.got)
		}
	}
}

func TestDimensionsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		n    int
		dims []int
		want string
	}{
		{0, []int{0}, "0 ranks: want 1 to 2147483647"},
		{1 << 31, []int{0}, "2147483648 ranks: want 1 to 2147483647"},
		{6, []int{2, -1}, "dims[1] is -1: want 0 or more"},
		{6, []int{2, 0, 2}, "dims[2] is 2: want a divisor of 3"},
		{6, []int{2, 1}, "the grid [2 1] has 2 places: want 6"},
		{2, nil, "the grid [] has 1 places: want 2"},
	} {
		dims := slices.Clone(c.dims)
		err := Dims(c.n, dims)
		if !errors.Is(err, core.ErrArgument) || !strings.Contains(err.Error(), c.want) || !slices.Equal(dims, c.dims) {
			t.Errorf("%d in %v: %v, and %v, want %q", c.n, c.dims, err, dims, c.want)
		}
	}
}

// grid is 2 by 3, without ranks.
var grid = &Grid{Dims: []int{2, 3}, Periodic: []bool{false, true}}

func TestRanksAndCoordinates(t *testing.T) {
	for r := range 6 {
		if at := grid.Coords(r); grid.RankAt(at) != r {
			t.Errorf("rank %d is at %v, where %d is", r, at, grid.RankAt(at))
		}
	}
	if at := grid.Coords(4); !slices.Equal(at, []int{1, 1}) {
		t.Errorf("rank 4 is at %v, want 1, 1", at)
	}
	for _, outside := range []int{-1, 6, core.ProcNull} {
		if at := grid.Coords(outside); at != nil {
			t.Errorf("rank %d is at %v, want nil", outside, at)
		}
	}
	for _, c := range []struct {
		at   []int
		want int
	}{{[]int{0, 3}, 0}, {[]int{1, -1}, 5}, {[]int{1, -7}, 5}, {[]int{2, 0}, core.ProcNull},
		{[]int{-1, 0}, core.ProcNull}} {
		if got := grid.RankAt(c.at); got != c.want {
			t.Errorf("at %v is %d, want %d", c.at, got, c.want)
		}
	}
	point := &Grid{}
	if at := point.Coords(0); at == nil || len(at) > 0 || point.RankAt(at) != 0 || point.Coords(1) != nil {
		t.Errorf("a grid without dimensions has rank 0 at %v, and 1 at %v", at, point.Coords(1))
	}
}

func TestRankAtWantsACoordinateForEachDimension(t *testing.T) {
	defer func() {
		if p := recover(); p != "topology: coordinates [1] in the grid [2 3]: want 2" {
			t.Errorf("panic: %v", p)
		}
	}()
	grid.RankAt([]int{1})
}

func TestShifts(t *testing.T) {
	for _, c := range []struct{ rank, dim, by, want int }{
		{0, 0, 1, 3}, {3, 0, 1, core.ProcNull}, {0, 0, -1, core.ProcNull}, {0, 1, -1, 2}, {5, 1, 1, 3}, {1, 1, 6, 1},
		{2, 0, 0, 2},
	} {
		if got := grid.Shifted(c.rank, c.dim, c.by); got != c.want {
			t.Errorf("from rank %d by %d in dimension %d: %d, want %d", c.rank, c.by, c.dim, got, c.want)
		}
	}
}
