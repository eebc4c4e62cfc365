package comm_test

import (
	"testing"

	"gompi/comm"
)

// An empty Layout fits behind every slice.
func TestAnEmptyLayoutLiesAnywhere(t *testing.T) {
	for _, x := range [][3][]int{{{4}, {0}, {4}}, {{3, 4}, {2, 0}, {1, 4}}, {{4, 4}, {0, 4}, {4, 0}}} {
		l, err := comm.Subarray(x[0], x[1], x[2])
		if err != nil {
			t.Fatal(err)
		}
		if b, err := comm.Lay(make([]int32, 2), l); err != nil || b.Len() != 0 || b.Type() != comm.TypeOf[int32]() {
			t.Errorf("%v: %d elements of %v, %v", x, b.Len(), b.Type(), err)
		}
	}
}
