package engine

import "testing"

func TestOnlyTheLastClosedAreRemembered(t *testing.T) {
	s := ids{in: map[uint64]bool{}, why: map[uint64][]byte{}}
	for i := range uint64(3 * manyIDs) {
		s.add(i, []byte{1})
	}
	if len(s.in) != manyIDs || len(s.why) != manyIDs || s.in[2*manyIDs-1] || !s.in[2*manyIDs] || !s.in[3*manyIDs-1] {
		t.Errorf("%d ids are remembered, want the last %d", len(s.in), manyIDs)
	}
}
