package seg

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// New makes the segment of a host that runs the given ranks, in ascending
// order. All its pages are allocated. The descriptor closes on exec; whoever
// starts the ranks hands it to them.
func New(ranks []int) (*Segment, error) {
	if len(ranks) < 1 || len(ranks) > MaxRanks {
		return nil, fmt.Errorf("host segment for %d ranks, want 1 to %d", len(ranks), MaxRanks)
	}
	fd, err := unix.MemfdCreate("gompi", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("host segment: memfd_create: %w", err)
	}
	_, _, size := sizes(len(ranks))
	s, err := create(fd, size, ranks)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("host segment of %d bytes: %w", size, err)
	}
	return s, nil
}

func create(fd, size int, ranks []int) (*Segment, error) {
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("allocate: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	format(mem, ranks)
	return view(fd, mem)
}

// Attach maps the segment behind an inherited descriptor, which from then on
// closes on exec and belongs to the Segment.
func Attach(fd int) (*Segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("host segment: descriptor %d: %w", fd, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < pageSize || st.Size > 1<<46 {
		return nil, fmt.Errorf("host segment: descriptor %d is not one: mode %#o, %d bytes", fd, st.Mode, st.Size)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("host segment: descriptor %d is not one: it may shrink", fd)
	}
	unix.CloseOnExec(fd)
	mem, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("host segment: map: %w", err)
	}
	s, err := view(fd, mem)
	if err != nil {
		unix.Munmap(mem)
		return nil, err
	}
	return s, nil
}

// Close unmaps the segment and closes its descriptor. Nothing of the Segment,
// its Ranks included, may be used after it.
func (s *Segment) Close() error {
	err := unix.Munmap(s.mem)
	unix.Close(s.fd)
	s.mem, s.head, s.lines, s.calls = nil, nil, nil, nil
	return err
}
