package liveness

import "testing"

func TestOnlyTheLastIDsAreRemembered(t *testing.T) {
	var s recent[uint64]
	for i := range uint64(3 * manyIDs) {
		s.add(i, i)
		s.add(i, 2*i)
	}
	if len(s.of) != manyIDs || s.has(2*manyIDs-1) || !s.has(2*manyIDs) || s.of[3*manyIDs-1] != 2*(3*manyIDs-1) {
		t.Errorf("%d ids are remembered, want the last %d", len(s.of), manyIDs)
	}
}
