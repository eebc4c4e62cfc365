package seg

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// hugePage is the size of the huge pages of memory, where the usual ones are of 4 KiB.
const hugePage = 2 << 20

// ClaimHuge is ClaimArena, of an arena that Arena returns, on huge pages where whole ones
// fit, by their addresses. Not a byte more is claimed for that. Where there are none, the
// usual ones serve: before Linux 6.1, or if no memory is left in one piece.
func (s *Segment) ClaimHuge(local world.LocalRank, off, n int) error {
	if err := s.afford(n); err != nil {
		return err
	}
	at := s.arenaAt(local) + off
	s.collapse(s.Arena(local)[off:][:n], at)
	return s.allocate(at, n)
}

// collapse makes huge pages where whole ones fit into memory, which begins at this place
// of the area. The kernel makes none of nothing, so each begins with a usual page, which it
// replaces; it zeroes the rest. So no more than that page is taken twice at any time, and
// for want of a huge page the kernel kills nobody. Other processes see the same pages:
// their addresses for them differ by whole ones.
func (s *Segment) collapse(memory []byte, at int) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % hugePage)
	whole := (len(memory) - skip) / hugePage * hugePage
	if whole <= 0 {
		return
	}
	for i := skip; i < skip+whole; i += hugePage {
		if s.allocate(at+i, pageSize) != nil {
			return // and whoever claims all of it will say why
		}
	}
	_ = unix.Madvise(memory[skip:][:whole], unix.MADV_COLLAPSE)
}

// mapArenas maps the arenas where huge pages of the file are huge pages of addresses.
func (s *Segment) mapArenas() {
	at := int64(s.head.end) + int64(s.arenaAt(0))
	addresses, err := unix.Mmap(-1, 0, arenaSpace+hugePage, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return
	}
	skip := (uintptr(at) - uintptr(unsafe.Pointer(&addresses[0]))) % hugePage
	_, err = unix.MmapPtr(s.fd, at, unsafe.Pointer(&addresses[skip]), arenaSpace, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		unix.Munmap(addresses)
		return
	}
	s.arenas = addresses[skip:][:arenaSpace]
	_ = unix.Madvise(s.arenas, unix.MADV_DONTDUMP) // or a core dump looks at every page of it
	s.addresses = addresses
}
