package seg

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// Attach maps the segment behind an inherited descriptor. The descriptor then belongs to the
// Segment and closes on exec.
func Attach(fd int) (*Segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("host segment: descriptor %d: %w", fd, err)
	}
	h := readHeader(fd)
	end, size := int(h.end), int(st.Size-int64(h.extra)-arenaSpace)
	if int(st.Size)-int(h.extra) == end {
		size = end
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || end < headerSize || size < end || st.Size > 1<<46 {
		return nil, fmt.Errorf("host segment: descriptor %d is not one: mode %#o, %d bytes", fd, st.Mode, st.Size)
	}
	unix.CloseOnExec(fd)
	mem, err := mapAll(fd, size, end)
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

// Extend adds n allocated bytes of zeros to the end of a fresh segment, and returns them. The agent
// calls it before starting the ranks.
func (s *Segment) Extend(n int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return nil, fmt.Errorf("host segment: %w", err)
	}
	defer raiseFileSize()()
	n = wholePages(n)
	if err := unix.Fallocate(s.fd, 0, st.Size, int64(n)); err != nil {
		return nil, fmt.Errorf("host segment: %s more: %w", Amount(int64(n)), fileSizeError(err))
	}
	s.head.extra = uint64(n)
	return s.Extension()
}

// Extension returns the bytes added by Extend, nil if there are none. They stay mapped.
func (s *Segment) Extension() ([]byte, error) {
	n := int(s.head.extra)
	if n == 0 {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return nil, fmt.Errorf("host segment: %w", err)
	}
	mem, err := unix.Mmap(s.fd, st.Size-int64(n), n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("host segment: map %s at its end: %w", Amount(int64(n)), err)
	}
	return mem, nil
}

// JobSize returns the number of ranks of the job whose agent has made the segment behind path, a
// /proc/PID/fd entry; 0 if path is not such a segment. JobSize maps nothing and opens no other
// file: closing a file would end the locks that this process has on that file.
func JobSize(path string) int {
	if name, err := os.Readlink(path); err != nil || !strings.Contains(name, memoryName) {
		return 0
	}
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	h := readHeader(int(f.Fd()))
	return int(h.job)
}

// IsSegment reports whether a descriptor refers to a segment.
func IsSegment(fd int) bool { return readHeader(fd).magic == magic }

// readHeader reads the header of a segment, or zeros if the file begins with no header.
func readHeader(fd int) *header {
	h := &header{}
	n, err := unix.Pread(fd, unsafe.Slice((*byte)(unsafe.Pointer(h)), headerSize), 0)
	if err != nil || n < headerSize || h.magic != magic || h.version != version {
		return &header{}
	}
	return h
}

// mapAll maps the segment without its arenas. If this process may not have so much address space,
// mapAll maps only the part before the area, which begins at end.
func mapAll(fd, size, end int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == unix.ENOMEM && headerSize <= end && end < size {
		return unix.Mmap(fd, 0, end, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	return mem, err
}

// Claim allocates n bytes of the area, and may be repeated for the same. A large claim first checks
// the memory limit: without memory, some kernels kill a process instead of returning an error.
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
		return fmt.Errorf("%s of shared memory: want %s to be left besides, there is %v: %w", Amount(int64(n)),
			Amount(spare), l, unix.ENOMEM)
	}
	return nil
}

// claimPiece is the number of bytes allocated at once. Before Linux 6.12 a signal makes a call give
// back its whole allocation, and a repeated signal would let a long call never end.
const claimPiece = 4 << 20

// allocate allocates n bytes of the area. After an error, some of them may exist.
func (s *Segment) allocate(off, n int) error {
	for n > 0 {
		piece := min(n, claimPiece)
		err := unix.Fallocate(s.fd, 0, int64(s.head.end)+int64(off), int64(piece))
		switch err {
		case nil:
			off, n = off+piece, n-piece
		case unix.EINTR:
		default:
			return err
		}
	}
	return nil
}

const (
	// many is the size in bytes from which a claim checks the memory limit first, in some 100 us:
	// of growing rings and large buffers of communicators, both optional, and of heap memory.
	many = 256 << 10
	// spare is the memory that must be left to the programs themselves.
	spare = 32 << 20
)

// Release makes holes again of the whole pages among n bytes of the area from off on. Pages that
// are claimed or touched again are zero.
func (s *Segment) Release(off, n int) error {
	from, to := wholePages(off), (off+n)&^(pageSize-1)
	if from >= to {
		return nil
	}
	return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
		int64(s.head.end)+int64(from), int64(to-from))
}

// ClaimArena makes sure that n bytes from off on of a local rank's arena exist. It may be called
// again for the same bytes.
func (s *Segment) ClaimArena(local world.LocalRank, off, n int) error {
	return s.Claim(s.arenaAt(local)+off, n)
}

// ReleaseArena makes a hole again of n bytes from off on of a local rank's arena, whole pages.
// Pages that are claimed or touched again are zero.
func (s *Segment) ReleaseArena(local world.LocalRank, off, n int) error {
	return s.Release(s.arenaAt(local)+off, n)
}

// released is the bytes freed at once, while no rank can claim or free any: 2 GiB take 0.3 s.
const released = 64 << 20

// FreeArena releases all of a local rank's arena.
func (s *Segment) FreeArena(local world.LocalRank) error {
	size := ArenaSize(s.Ranks())
	for at := 0; at < size; at += released {
		if err := s.ReleaseArena(local, at, min(released, size-at)); err != nil {
			return err
		}
	}
	return nil
}

// arenaAt returns the offset of a local rank's arena in the area.
func (s *Segment) arenaAt(local world.LocalRank) int {
	return AreaSize(s.Ranks()) + int(local)*ArenaSize(s.Ranks())
}

// Close unmaps the segment and closes its descriptor. Nothing of the Segment, its Ranks included,
// may be used after Close.
func (s *Segment) Close() error {
	err := unix.Munmap(s.mem)
	if s.addresses != nil {
		unix.Munmap(s.addresses)
	}
	unix.Close(s.fd)
	s.mem, s.head, s.lines, s.calls, s.arenas, s.addresses = nil, nil, nil, nil, nil, nil
	return err
}
