package liveness

import "testing"

func TestOnlyTheLastIDsAreRemembered(t *testing.T) {
	var s recent[uint64]
	for i := range uint64(3 * recentIDs) {
		s.add(i, i)
		s.add(i, 2*i)
	}
	if len(s.of) != recentIDs || s.has(2*recentIDs-1) || !s.has(2*recentIDs) ||
		s.of[3*recentIDs-1] != 2*(3*recentIDs-1) {
		t.Errorf("%d ids are remembered, want the last %d", len(s.of), recentIDs)
	}
}
