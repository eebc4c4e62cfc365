package seg

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// A segment without an area is one all the same: it has the states of the ranks, and says why there
// is no more of it.
func TestASegmentWithoutAnArea(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	_, _, end := sizes(2)
	why := errors.New("why")
	s, err := create(fd, end, why, []world.Rank{4, 7})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := remap(t, s)
	for _, s := range []*Segment{s, o} {
		if s.Area() != nil || s.Arena(0) != nil || s.WorldRank(1) != 7 {
			t.Errorf("an area of %d bytes, an arena of %d, rank %d; want none, and rank 7", len(s.Area()),
				len(s.Arena(0)), s.WorldRank(1))
		}
	}
	if !s.Rank(1).Join() || o.State(1) != Joined || s.Without() != why {
		t.Errorf("%v, %v; want joined, without an area because of %v", o.State(1), s.Without(), why)
	}
}

func TestASegmentIsKnownByWhatStandsInIt(t *testing.T) {
	s := newSegment(t, 0, 1)
	s.SetJobSize(5)
	path := func(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
	if n := JobSize(path(s.FD())); n != 5 || !IsSegment(s.FD()) {
		t.Errorf("a job of %d ranks, a segment: %v; want 5, true", n, IsSegment(s.FD()))
	}
	other, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.Write(make([]byte, 2*pageSize))
	lock := &unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(other.Fd(), unix.F_SETLK, lock); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // to open its writing end would wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, f := range []*os.File{other, r, w} {
		if n := JobSize(path(int(f.Fd()))); n != 0 || IsSegment(int(f.Fd())) {
			t.Errorf("%s: a job of %d ranks, a segment: %v; want neither", f.Name(), n, IsSegment(int(f.Fd())))
		}
	}
	if unix.FcntlFlock(other.Fd(), unix.F_OFD_GETLK, lock); lock.Type == unix.F_UNLCK {
		t.Error("this process's lock on another file is gone")
	}
}

func TestALateProgramIsNoted(t *testing.T) {
	s := newSegment(t, 0, 1)
	if s.Rank(0).Late() || s.CameLate(0) {
		t.Error("late before the agent's process has ended")
	}
	s.SetEnded(0)
	if s.Rank(0).Join() || !s.Rank(0).Late() || !s.CameLate(0) {
		t.Error("not late after it")
	}
	s.Rank(1).Join()
	s.SetEnded(1)
	if s.Rank(1).Late() || s.CameLate(1) {
		t.Error("late in a place that has been used")
	}
}

// A long claim is made of pieces, and has all of them.
func TestALongClaimIsWhole(t *testing.T) {
	s := newSegment(t, 0)
	n := 2*claimPiece + pageSize
	blocks := func() int64 {
		var st unix.Stat_t
		if err := unix.Fstat(s.FD(), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	before := blocks()
	if err := s.ClaimArena(0, pageSize, n); err != nil {
		t.Fatal(err)
	}
	if got := blocks() - before; got != int64(n) {
		t.Errorf("%d bytes are allocated, want %d", got, n)
	}
}
