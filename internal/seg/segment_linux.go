package seg

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// New makes the segment of a host that runs the given ranks, in ascending
// order. Its area is empty. The descriptor closes on exec; whoever
// starts the ranks hands it to them.
func New(ranks []world.Rank) (*Segment, error) {
	if len(ranks) < 1 || len(ranks) > MaxRanks {
		return nil, fmt.Errorf("host segment for %d ranks, want 1 to %d", len(ranks), MaxRanks)
	}
	fd, err := unix.MemfdCreate("gompi", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("host segment: memfd_create: %w", err)
	}
	_, _, end := sizes(len(ranks))
	s, err := create(fd, end, ranks)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("host segment of %d bytes: %w", end, err)
	}
	return s, nil
}

// create makes the segment whose area begins at end.
func create(fd, end int, ranks []world.Rank) (*Segment, error) {
	if err := unix.Fallocate(fd, 0, 0, int64(end)); err != nil {
		return nil, fmt.Errorf("allocate: %w", err)
	}
	size := end + AreaSize(len(ranks))
	if err := unix.Ftruncate(fd, int64(size)+arenaSpace); err != nil {
		return nil, fmt.Errorf("size: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	mem, err := mapAll(fd, size, end)
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
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < arenaSpace+pageSize || st.Size > 1<<46 {
		return nil, fmt.Errorf("host segment: descriptor %d is not one: mode %#o, %d bytes", fd, st.Mode, st.Size)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("host segment: descriptor %d is not one: it may shrink", fd)
	}
	unix.CloseOnExec(fd)
	mem, err := mapAll(fd, int(st.Size-arenaSpace), endOf(fd))
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

// endOf reads where the area begins, from a header that is yet to be checked.
func endOf(fd int) int {
	var word [8]byte
	unix.Pread(fd, word[:], int64(unsafe.Offsetof(header{}.end))) // 0 is refused like any nonsense
	return int(binary.NativeEndian.Uint64(word[:]))
}

// mapAll maps the segment without its arenas, or all before its area, which begins at end, where a
// process may not have so much address space.
func mapAll(fd, size, end int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == unix.ENOMEM && pageSize <= end && end < size {
		return unix.Mmap(fd, 0, end, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	return mem, err
}

// Claim allocates n bytes of the area. It may be called again for the same bytes. A large claim
// checks the memory limit first: without memory, some kernels kill a process instead of returning
// an error.
func (s *Segment) Claim(off, n int) error {
	if err := s.afford(n); err != nil {
		return err
	}
	return s.allocate(off, n)
}

// afford checks a large claim of n bytes against the memory limit.
func (s *Segment) afford(n int) error {
	if n < many {
		return nil
	}
	if l := s.limit(); l.Left < int64(n)+spare {
		return fmt.Errorf("%s of shared memory: want %s to be left besides, there is %v: %w", Amount(int64(n)), Amount(spare), l, unix.ENOMEM)
	}
	return nil
}

// allocate has n bytes of the area exist.
func (s *Segment) allocate(off, n int) error {
	for {
		err := unix.Fallocate(s.fd, 0, int64(s.head.end)+int64(off), int64(n))
		if err != unix.EINTR {
			return err
		}
	}
}

const (
	// many is the size in bytes from which a claim checks the memory limit first, which takes some
	// 100 us. Such claims are growing rings and large buffers of communicators, both of which are
	// optional, and heap memory.
	many = 256 << 10
	// spare is what must be left to the programs themselves.
	spare = 32 << 20
)

// Release makes holes again of the whole pages among n bytes of the area from off on. What is there
// when they are claimed or touched again is zero.
func (s *Segment) Release(off, n int) error {
	from, to := (off+pageSize-1)&^(pageSize-1), (off+n)&^(pageSize-1)
	if from >= to {
		return nil
	}
	return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(s.head.end)+int64(from), int64(to-from))
}

// ClaimArena makes sure that n bytes from off on of a local rank's arena exist. It
// may be called again for the same bytes.
func (s *Segment) ClaimArena(local world.LocalRank, off, n int) error {
	return s.Claim(s.arenaAt(local)+off, n)
}

// ReleaseArena makes a hole again of n bytes from off on of a local rank's arena,
// whole pages. What is there when they are claimed or touched again is zero.
func (s *Segment) ReleaseArena(local world.LocalRank, off, n int) error {
	return s.Release(s.arenaAt(local)+off, n)
}

// arenaAt returns where a local rank's arena begins, from the area on.
func (s *Segment) arenaAt(local world.LocalRank) int {
	return AreaSize(s.Ranks()) + int(local)*ArenaSize(s.Ranks())
}

// Close unmaps the segment and closes its descriptor. Nothing of the Segment,
// its Ranks included, may be used after it.
func (s *Segment) Close() error {
	err := unix.Munmap(s.mem)
	if s.addresses != nil {
		unix.Munmap(s.addresses)
	}
	unix.Close(s.fd)
	s.mem, s.head, s.lines, s.calls, s.arenas, s.addresses = nil, nil, nil, nil, nil, nil
	return err
}
