package ddp

import (
	"fmt"
	"testing"

	"gompi/comm"
)

func TestBucketsHoldAtMostTheirLimitAndBeginWithTheLastParameter(t *testing.T) {
	for _, tc := range []struct {
		sizes        []int
		first, bytes int
		want         string
	}{
		{nil, 8, 80, "[]"},
		{[]int{4}, 8, 80, "[[0]]"},
		{[]int{4, 4, 4}, 8, 80, "[[2 1] [0]]"},
		{[]int{4, 4, 4}, 12, 80, "[[2 1 0]]"},
		{[]int{40, 40, 40, 12}, 8, 80, "[[3] [2 1] [0]]"},
		{[]int{4, 400, 4, 4}, 4, 8, "[[3] [2] [1] [0]]"},
		{[]int{0, 0, 8, 0}, 8, 8, "[[3 2 1 0]]"},
	} {
		var params []*Tensor
		for _, size := range tc.sizes {
			params = append(params, &Tensor{Data: comm.Of(make([]float32, size/4))})
		}
		if got := fmt.Sprint(layout(lastToFirst(len(params)), params, tc.first, tc.bytes)); got != tc.want {
			t.Errorf("layout of %v, %d, %d is %s, want %s", tc.sizes, tc.first, tc.bytes, got, tc.want)
		}
	}
}
