package stall

import (
	"reflect"
	"testing"
	"time"

	"gompi/internal/calls"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
)

func TestARankIsInItsNewestCallThatIsNotDone(t *testing.T) {
	call := func(number uint64, kind calls.Kind, comm uint64, seq, start int64, done bool) seg.Recording {
		return seg.Recording{Number: number, Call: seg.Call{Kind: kind, Comm: comm, Seq: seq, Start: start,
			Peer: -1}, Done: done}
	}
	done, open := call(1, calls.Barrier, 0, 1, 5, true), call(2, calls.Barrier, 0, 2, 5, false)
	for _, tt := range []struct {
		name  string
		calls []seg.Recording
		want  ctl.RankDoing
		at    uint64
	}{
		{"none", nil, ctl.RankDoing{Text: "has called nothing but Init"}, 0},
		{"done", []seg.Recording{done}, ctl.RankDoing{Text: "is in no call, the last was barrier() number 1",
			Marks: []ctl.Mark{{Seq: 1}}}, 0},
		{"collective", []seg.Recording{done, open},
			ctl.RankDoing{Text: "is in barrier() number 2", Site: "x.go:7", Since: 95 * time.Nanosecond,
				In: ctl.Mark{Seq: 2}, Marks: []ctl.Mark{{Seq: 2}}}, 2},
		{"waited for", []seg.Recording{open, call(3, calls.Barrier, 7, 4, 0, true),
			call(4, calls.Wait, 0, 0, 50, false)},
			ctl.RankDoing{Text: "is in barrier() number 2", Site: "x.go:7", Since: 95 * time.Nanosecond,
				In: ctl.Mark{Seq: 2}, Marks: []ctl.Mark{{Comm: 7, Seq: 4}, {Seq: 2}}}, 4},
	} {
		var got ctl.RankDoing
		var at uint64
		site := func(number uint64) string { at = number; return "x.go:7" }
		Describe(&got, tt.calls, site, nil, 100)
		if at != tt.at || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v at %d, want %+v at %d", tt.name, got, at, tt.want, tt.at)
		}
	}
}

func TestCallsOfMPIProgramsAreMPIs(t *testing.T) {
	done := seg.Recording{Number: 1, Call: seg.Call{Kind: calls.Barrier, Seq: 1, Peer: -1}, Done: true}
	other := seg.Recording{Number: 2, Call: seg.Call{Kind: calls.Barrier, Seq: 4, Peer: -1, Comm: 7}}
	ocean := func(comm uint64) (name seg.CommName) {
		if comm == 7 {
			name.Text = "ocean"
		}
		return name
	}
	recv := seg.Recording{Number: 2, Call: seg.Call{Kind: calls.Recv, Seq: 7, Peer: 3}}
	for _, tt := range []struct {
		calls    []seg.Recording
		site     string
		text, at string
	}{
		{nil, "", "has called nothing but MPI_Init", ""},
		{[]seg.Recording{done}, "", "is in no call, the last was MPI_Barrier() number 1 on MPI_COMM_WORLD", ""},
		{[]seg.Recording{done, recv}, "MPI_Recv", "is in MPI_Recv(from rank 3, tag 7) on MPI_COMM_WORLD", ""},
		{[]seg.Recording{done, other}, "MPI_Barrier", "is in MPI_Barrier() number 4 on ocean", ""},
		{[]seg.Recording{done, recv}, "MPI_Wait", "is in MPI_Irecv(from rank 3, tag 7) on MPI_COMM_WORLD", "MPI_Wait"},
	} {
		var got ctl.RankDoing
		Describe(&got, tt.calls, func(uint64) string { return tt.site }, ocean, 100)
		if got.Text != tt.text || got.Site != tt.at {
			t.Errorf("%q at %q, want %q at %q", got.Text, got.Site, tt.text, tt.at)
		}
	}
}
