package ddp

import (
	"fmt"
	"testing"
)

func TestBucketsHoldAtMostTheirLimitAndBeginWithTheLastParameter(t *testing.T) {
	for _, tc := range []struct {
		lengths      []int // in numbers of 4 bytes
		first, bytes int
		want         string
	}{
		{nil, 8, 80, "[]"},
		{[]int{1}, 8, 80, "[[0]]"},
		{[]int{1, 1, 1}, 8, 80, "[[2 1] [0]]"},
		{[]int{1, 1, 1}, 12, 80, "[[2 1 0]]"},
		{[]int{10, 10, 10, 3}, 8, 80, "[[3] [2 1] [0]]"},
		{[]int{1, 100, 1, 1}, 4, 8, "[[3] [2] [1] [0]]"},
		{[]int{0, 0, 2, 0}, 8, 8, "[[3 2 1 0]]"},
	} {
		if got := fmt.Sprint(layout(tc.lengths, tc.first, tc.bytes)); got != tc.want {
			t.Errorf("layout(%v, %d, %d) = %s, want %s", tc.lengths, tc.first, tc.bytes, got, tc.want)
		}
	}
}
