package seg

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// ClaimHuge is ClaimArena with huge pages wherever an aligned one fits. The arena must be mapped:
// Arena does not return nil. No bytes beyond the n are claimed. Before Linux 6.1, or without
// contiguous free memory, the pages are ordinary.
func (s *Segment) ClaimHuge(local world.LocalRank, off, n int) error {
	if err := s.afford(n); err != nil {
		return err
	}
	at := s.arenaAt(local) + off
	s.collapse(s.Arena(local)[off:][:n], at)
	err := s.allocate(at, n)
	if err != nil {
		_ = s.Release(at, n) // the bytes allocated before the error
	}
	return err
}

// collapse makes huge pages of the aligned 2 MiB ranges of memory, which begins at offset at of the
// area. MADV_COLLAPSE needs an existing page, so one ordinary page of each range is allocated
// first. The kernel replaces that page and zeroes the rest: at most that page exists twice, and a
// lack of huge pages invokes no OOM killer. Other processes map the same huge pages: their
// addresses differ by multiples of 2 MiB.
func (s *Segment) collapse(memory []byte, at int) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % hugePage)
	whole := (len(memory) - skip) / hugePage * hugePage
	if whole <= 0 {
		return
	}
	for i := skip; i < skip+whole; i += hugePage {
		if s.allocate(at+i, pageSize) != nil {
			return // the caller, which claims all of memory, will report the error
		}
	}
	_ = unix.Madvise(memory[skip:][:whole], unix.MADV_COLLAPSE)
}

// mapArenas maps the arenas so that huge pages of the file are huge pages of addresses.
func (s *Segment) mapArenas() {
	at := int64(s.head.end) + int64(s.arenaAt(0))
	addresses, err := unix.Mmap(-1, 0, arenaSpace+hugePage, unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return
	}
	skip := (uintptr(at) - uintptr(unsafe.Pointer(&addresses[0]))) % hugePage
	_, err = unix.MmapPtr(s.fd, at, unsafe.Pointer(&addresses[skip]), arenaSpace,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		unix.Munmap(addresses)
		return
	}
	s.arenas = addresses[skip:][:arenaSpace]
	_ = unix.Madvise(s.arenas, unix.MADV_DONTDUMP) // otherwise a core dump looks at every page
	s.addresses = addresses
}
