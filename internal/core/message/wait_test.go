package message

import (
	"slices"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/payload"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Who waits for several messages looks at a peer from which one is missing, in whatever order they
// come.
func TestAWaitForSeveralLooksAtWhatIsMissing(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		e := New(Config{Size: 4, Yield: func() {}})
		e.Progress.Lock()
		w := e.newWaiter(t.Context())
		var rs []*Request
		for peer := range 3 {
			r := e.open()
			r.begin(nil, payload.Queued, mem.Buffer{}, world.Rank(peer), 0)
			w.left++
			w.watch(r)
			rs = append(rs, r)
		}
		for i, n := range order {
			e.Finish(rs[n], nil)
			missing := order[i+1:]
			if len(missing) > 0 && !slices.Contains(missing, int(w.Hint)) || len(missing) == 0 && w.Hint != world.None {
				t.Errorf("%v: after %d of them it looks at %d", order, i+1, w.Hint)
			}
			if w.left != len(missing) {
				t.Errorf("%v: %d are missing, want %d", order, w.left, len(missing))
			}
		}
		e.freeWaiter(w)
		e.Progress.Unlock()
	}
}

// Waits on a hidden channel are none of the program's: they are not recorded.
func TestAHiddenChannelIsNotRecorded(t *testing.T) {
	e := New(Config{Size: 2, Yield: func() {}})
	e.flight = new(seg.Recorder)
	ch := &Channel{Engine: e}
	recorded := func() (kinds []calls.Kind, collectives bool) {
		r := &Request{ch: ch}
		r.Stage = payload.Posted
		for _, w := range []*waiter{{e: e, probed: ch}, {e: e, request: r}} {
			c, _, _ := w.Describe()
			kinds = append(kinds, c.Kind)
		}
		return kinds, ch.Flight() != nil
	}
	if kinds, collectives := recorded(); !slices.Equal(kinds, []calls.Kind{calls.Probe, calls.Recv}) || !collectives {
		t.Errorf("recorded: %v, collectives %v; want a probe, a receive, and collectives", kinds, collectives)
	}
	ch.Hide()
	if kinds, collectives := recorded(); !slices.Equal(kinds, []calls.Kind{calls.None, calls.None}) || collectives {
		t.Errorf("of a hidden channel are recorded: %v, collectives %v", kinds, collectives)
	}
}
