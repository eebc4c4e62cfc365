package seg

import (
	"fmt"
	"testing"
	"unsafe"

	"gompi/internal/world"
)

// Whatever the kernel's page size: mapped or released memory begins at a multiple of it, no part
// overlaps another, and a segment laid out so works.
func TestLayoutsFollowThePageSize(t *testing.T) {
	defer func(own int) { pageSize = own }(pageSize)
	for _, page := range []int{4 << 10, 16 << 10, 64 << 10} {
		pageSize = page
		for _, n := range []int{1, 2, 3, 5, 7, 31, 33, 100, 1000, MaxRanks} {
			lines, calls, end := sizes(n)
			area, arena := AreaSize(n), ArenaSize(n)
			if end%page != 0 || area%page != 0 || arena%page != 0 || arena <= 0 {
				t.Errorf("page %d, %d ranks: the area begins at %d and has %d bytes, an arena %d: want multiples", page,
					n, end, area, arena)
			}
			if lines < headerSize || calls < lines+n*lineSize || end < calls+n*recorderSize || n*arena > arenaSpace {
				t.Errorf("page %d, %d ranks: lines at %d, calls at %d, area at %d, arenas of %d: they overlap", page, n,
					lines, calls, end, arena)
			}
		}
		t.Run(fmt.Sprint(page), func(t *testing.T) { useLayout(t, page) })
	}
}

func useLayout(t *testing.T, page int) {
	s, err := New([]world.Rank{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := remap(t, s)
	for local := range world.LocalRank(3) {
		if err := s.ClaimArena(local, page, 2*page); err != nil {
			t.Fatal(err)
		}
		mine := s.Arena(local)
		if at := uintptr(unsafe.Pointer(&mine[0])); at%uintptr(page) != 0 {
			t.Errorf("arena %d is at %#x", local, at)
		}
		mine[page], mine[3*page-1] = 1, byte(2+local)
		if theirs := o.Arena(local); theirs[page] != 1 || theirs[3*page-1] != byte(2+local) {
			t.Errorf("arena %d reads as %d and %d", local, theirs[page], theirs[3*page-1])
		}
	}
	before := held(t, s)
	if err := s.ReleaseArena(1, page, page); err != nil || before-held(t, s) != int64(page) {
		t.Errorf("releasing a page: %v, %d bytes are gone, want %d", err, before-held(t, s), page)
	}
	if theirs := o.Arena(1); theirs[page] != 0 || theirs[3*page-1] != 3 {
		t.Errorf("after a release: %d and %d; want 0 and what was there", theirs[page], theirs[3*page-1])
	}
}
