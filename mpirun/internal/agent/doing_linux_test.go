package agent

import (
	"testing"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

func TestAReplacementOfAReplacementIsKnownByTheFirst(t *testing.T) {
	var s originals
	s.learn([]wire.Replacement{{Dead: 1, By: 4}})
	s.learn([]wire.Replacement{{Dead: 4, By: 6}, {Dead: 0, By: 5}})
	for rank, want := range map[world.Rank]world.Rank{0: 0, 3: 3, 4: 1, 5: 0, 6: 1, -1: -1} {
		if got := s.named(rank); got != want {
			t.Errorf("rank %d is known by %d, want %d", rank, got, want)
		}
	}
}
