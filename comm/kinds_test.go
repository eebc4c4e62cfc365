package comm

import (
	"testing"

	"gompi/comm/internal/engine"
	"gompi/internal/seg"
)

// The flight recorder shows collectives by the numbers that frames carry.
func TestRecorderAndFramesNumberCollectivesAlike(t *testing.T) {
	for k := engine.Barrier; k <= engine.Free; k++ {
		if got, want := seg.Kind(k).String(), k.String(); got != want {
			t.Errorf("collective %d is %q in the recorder, %q in frames", k, got, want)
		}
	}
}
