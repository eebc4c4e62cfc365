package core_test

import (
	"errors"
	"testing"
)

func TestOperationsInMemoryTowardsARankThatHasClosedTheCommFail(t *testing.T) {
	for _, p := range []int{2, 3} {
		for _, before := range []bool{true, false} {
			if err := errors.Join(inRooms(t, p, closedElsewhere(before))...); err != nil {
				t.Errorf("%d ranks, closed before: %v: %v", p, before, err)
			}
		}
	}
}
