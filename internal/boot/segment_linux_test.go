package boot

import (
	"context"
	"fmt"
	"net"
	"testing"

	"gompi/internal/stress"
	"gompi/internal/world"
)

// Ranks of one host that no agent started see one segment, in which each has its
// place and its doorbell.
func TestRanksWithoutAnAgentGetOneSegment(t *testing.T) {
	ranks := meet(t, 4)
	for r, s := range ranks {
		in := s.Info()
		if in.Unshared != nil || in.Segment == nil || len(in.Bells) != 4 {
			t.Fatalf("rank %d: segment %v, %d doorbells, %v", r, in.Segment, len(in.Bells), in.Unshared)
		}
		if pid := in.Segment.PID(world.LocalRank(r)); pid == 0 {
			t.Errorf("rank %d has not joined", r)
		}
		in.Segment.Bump()
	}
	for r, s := range ranks {
		if e := s.info.Segment.Epoch(); e != 4 {
			t.Errorf("rank %d sees epoch %d, want that of all four", r, e)
		}
	}
}

// A process without the job's secret gets nothing, and delays no rank.
func TestTheSegmentSocketIsForRanksOfTheJob(t *testing.T) {
	own := listenSegment()
	defer own.close()
	ranks := make([]Info, 2)
	for r := range ranks {
		ranks[r] = Info{Rank: world.Rank(r), Size: 2, LocalRank: world.LocalRank(r), LocalSize: 2, Secret: [32]byte{1}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	outsiders := make(chan error, 1)
	go func() {
		strange := ranks[1]
		strange.Secret[0]++
		outsiders <- strange.share(ctx, segmentSocket{}, own.name())
		ranks[1].Unshared = ranks[1].share(ctx, segmentSocket{}, own.name())
		outsiders <- nil
	}()
	if err := ranks[0].share(ctx, own, ""); err != nil {
		t.Fatal(err)
	}
	if err := <-outsiders; err == nil {
		t.Error("a rank of another job got the segment")
	}
	if <-outsiders; ranks[1].Unshared != nil || ranks[1].Segment == nil {
		t.Errorf("the rank after it got %v, %v", ranks[1].Segment, ranks[1].Unshared)
	}
}

// A socket on which no connection can be accepted for a while, since descriptors are exhausted,
// accepts them afterwards; and connections that stay silent block no rank.
func TestTheSegmentSocketOutlivesErrorsAndSilence(t *testing.T) {
	own := listenSegment()
	defer own.close()
	silent, err := net.Dial("unix", own.name())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	name := own.name()
	tired := &stress.Exhausted{Listener: own.ln}
	tired.Left.Store(1)
	own.ln = tired
	ranks := make([]Info, 3)
	got := make(chan error, len(ranks))
	for r := range ranks {
		ranks[r] = Info{Rank: world.Rank(r), Size: 3, LocalRank: world.LocalRank(r), LocalSize: 3, Secret: [32]byte{1}}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		go func() { got <- ranks[r].share(ctx, map[bool]segmentSocket{true: own}[r == 0], name) }()
	}
	for range ranks {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

// Without a segment there is a reason, and the ranks meet all the same.
func TestWithoutTheSegmentSocketRanksHaveNoSegment(t *testing.T) {
	in := Info{Rank: 0, Size: 2, LocalSize: 2}
	if err := in.share(t.Context(), segmentSocket{}, ""); err == nil || in.Segment != nil {
		t.Errorf("the first rank got %v, %v", in.Segment, err)
	}
	ln, err := net.Listen("unix", "")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close() // the first rank is gone
	in = Info{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}
	if err := in.share(t.Context(), segmentSocket{}, fmt.Sprint(ln.Addr())); err == nil || in.Segment != nil {
		t.Errorf("another rank got %v, %v", in.Segment, err)
	}
}
