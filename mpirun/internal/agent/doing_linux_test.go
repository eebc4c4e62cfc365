package agent

import (
	"reflect"
	"testing"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
)

func TestARankIsInItsNewestCallThatIsNotDone(t *testing.T) {
	call := func(number uint64, kind seg.Kind, comm uint64, seq, start int64, done bool) seg.Recording {
		return seg.Recording{Number: number, Call: seg.Call{Kind: kind, Comm: comm, Seq: seq, Start: start, Peer: -1}, Done: done}
	}
	done, open := call(1, seg.Barrier, 0, 1, 5, true), call(2, seg.Barrier, 0, 2, 5, false)
	for _, tt := range []struct {
		name  string
		calls []seg.Recording
		want  ctl.RankDoing
		at    uint64
	}{
		{"none", nil, ctl.RankDoing{Text: "has called nothing but Init"}, 0},
		{"done", []seg.Recording{done}, ctl.RankDoing{Text: "is in no call, the last was barrier() number 1", Marks: []ctl.Mark{{Seq: 1}}}, 0},
		{"collective", []seg.Recording{done, open}, ctl.RankDoing{Text: "is in barrier() number 2", Since: 95 * time.Nanosecond, In: ctl.Mark{Seq: 2}, Marks: []ctl.Mark{{Seq: 2}}}, 2},
		{"waited for", []seg.Recording{open, call(3, seg.Barrier, 7, 4, 0, true), call(4, seg.Wait, 0, 0, 50, false)},
			ctl.RankDoing{Text: "is in barrier() number 2", Since: 95 * time.Nanosecond, In: ctl.Mark{Seq: 2}, Marks: []ctl.Mark{{Comm: 7, Seq: 4}, {Seq: 2}}}, 4},
	} {
		var got ctl.RankDoing
		if at := describe(&got, tt.calls, 100); at != tt.at || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v at %d, want %+v at %d", tt.name, got, at, tt.want, tt.at)
		}
	}
}

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
