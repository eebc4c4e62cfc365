package message

import (
	"slices"
	"testing"

	"gompi/comm/internal/payload"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// Who waits for several messages looks at a peer from which one is missing, in whatever order they
// come.
func TestAWaitForSeveralLooksAtWhatIsMissing(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		e := New(Config{Size: 4, Yield: func() {}})
		e.progress.Lock()
		w := e.newWaiter()
		var rs []*Request
		for peer := range 3 {
			r := e.open()
			r.begin(nil, payload.Queued, mem.Buffer{}, world.Rank(peer), 0)
			w.left++
			w.watch(r)
			rs = append(rs, r)
		}
		for i, n := range order {
			e.finish(rs[n], nil)
			missing := order[i+1:]
			if len(missing) > 0 && !slices.Contains(missing, int(w.Hint)) || len(missing) == 0 && w.Hint != world.None {
				t.Errorf("%v: after %d of them it looks at %d", order, i+1, w.Hint)
			}
			if w.left != len(missing) {
				t.Errorf("%v: %d are missing, want %d", order, w.left, len(missing))
			}
		}
		e.freeWaiter(w)
		e.progress.Unlock()
	}
}
