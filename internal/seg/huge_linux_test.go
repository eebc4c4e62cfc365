package seg

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// place returns where in an arena the first huge page may begin, but for some pages.
func place(arena []byte, pages int) int {
	return int(-uintptr(unsafe.Pointer(&arena[0]))%hugePage) + pages*pageSize
}

// A claim of huge pages is one like any other, whether the kernel has them or not: of so
// many bytes, that are zero, that all see, and that are given back.
func TestClaimHugeClaimsWhatItSaysAndNoMore(t *testing.T) {
	s := newSegment(t, 0, 1, 2)
	o := remap(t, s)
	for _, test := range []struct{ at, n int }{ // pages from the beginning of a huge one on
		{0, 1}, {0, 511}, {0, 512}, {0, 513}, {1, 1023}, {1, 1024}, {511, 1030}, {0, 4096},
	} {
		mine, n := s.Arena(1), test.n*pageSize
		off := place(mine, test.at)
		// o has page tables before there are pages
		if o.Arena(1)[off] != 0 || s.ReleaseArena(1, off-test.at*pageSize, 10*hugePage) != nil {
			t.Fatal("there is something")
		}
		before := held(t, s)
		for range 2 { // the content stays
			if err := s.ClaimHuge(1, off, n); err != nil {
				t.Fatal(err)
			}
			if got := held(t, s) - before; got != int64(n) {
				t.Errorf("%+v: %d bytes exist after a claim of %d", test, got, n)
			}
			mine[off], mine[off+n-1] = mine[off]+1, mine[off+n-1]+1
		}
		if got := o.Arena(1)[off:][:n]; got[0] != 2 || got[n-1] != 2 || bytes.Count(got, []byte{0}) != n-2 {
			t.Errorf("%+v: begins with %d, ends with %d, and has %d zeroes", test, got[0], got[n-1],
				bytes.Count(got, []byte{0}))
		}
		if err := s.ReleaseArena(1, off, n); err != nil || held(t, s) != before || o.Arena(1)[off] != 0 {
			t.Errorf("%+v: %d bytes too many when all is released, %v", test, held(t, s)-before, err)
		}
		s.ReleaseArena(1, off, n) // touched memory exists
	}
}

// held returns the bytes of the segment that exist.
func held(t *testing.T, s *Segment) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(s.FD(), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}
