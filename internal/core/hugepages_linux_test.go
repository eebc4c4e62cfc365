package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Long memory from Alloc is on huge pages, where the kernel makes any, for its own rank
// and for those who map the segment after that.
func TestLongAllocatedMemoryIsOnHugePages(t *testing.T) {
	if err := hugePages(); err != nil {
		t.Skipf("left out: the kernel makes no huge pages of shared memory: %v", err)
	}
	const n, size = 6<<20 + 1, 3 << 21 // bytes, and those that are on huge pages
	failed, few := noMemoryFor(), errors.New("not on huge pages")
	boots, s := withMemory(t, 2)
	defer s.Close()
	err := errors.Join(overBoots(t, boots, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		if _, err := comm.Alloc[byte](ctx, c, 100); err != nil { // so that the next begins behind something
			return err
		}
		best := 0
		for range 3 { // the kernel may find no memory in one piece at one time, and find it later
			v, err := comm.Alloc[byte](ctx, c, n)
			if err != nil {
				return err
			}
			got, err := huge(s, world.LocalRank(c.Rank()), v)
			if err := errors.Join(err, comm.Free(ctx, c, v)); err != nil {
				return err
			}
			best = max(best, got)
		}
		if best < size {
			return fmt.Errorf("%w: %d bytes of %d, want %d", few, best, n, size)
		}
		return nil
	})...)
	if errors.Is(err, few) && noMemoryFor() > failed {
		t.Skipf("left out: the kernel found no memory in one piece: %v", err)
	}
	if err != nil {
		t.Error(err)
	}
}

// huge returns how many bytes of v, in the arena of a local rank, are on huge pages, for those
// who see the fewest.
func huge(s *seg.Segment, rank world.LocalRank, v []byte) (int, error) {
	fd, err := unix.Dup(s.FD())
	if err != nil {
		return 0, err
	}
	late, err := seg.Attach(fd)
	if err != nil {
		return 0, err
	}
	defer late.Close()
	least := len(v)
	at := uintptr(unsafe.Pointer(&v[0])) - uintptr(unsafe.Pointer(&s.Arena(rank)[0]))
	for _, view := range [][]byte{v, late.Arena(rank)[at:][:len(v)]} {
		for i := range view {
			view[i] = byte(i)
		}
		got, err := onHugePages(view)
		if err != nil {
			return 0, err
		}
		least = min(least, got)
	}
	return least, nil
}

// hugePages tells why there are none.
func hugePages() error {
	const size = 2 << 20
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, size); err != nil {
		return err
	}
	room, err := unix.Mmap(-1, 0, 2*size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer unix.Munmap(room)
	mem := room[-uintptr(unsafe.Pointer(&room[0]))%size:][:size]
	_, err = unix.MmapPtr(fd, 0, unsafe.Pointer(&mem[0]), size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return err
	}
	clear(mem)
	return unix.Madvise(mem, unix.MADV_COLLAPSE)
}

// noMemoryFor returns how many huge pages the kernel has not made since it began because it found
// no memory for them.
func noMemoryFor() (pages int) {
	data, _ := os.ReadFile("/proc/vmstat")
	_, rest, _ := strings.Cut(string(data), "\nthp_collapse_alloc_failed ")
	fmt.Sscan(rest, &pages)
	return pages
}

// onHugePages returns how much of the mapping that b is in is on huge pages.
func onHugePages(b []byte) (bytes int, err error) {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	at, inside := uint64(uintptr(unsafe.Pointer(&b[0]))), false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= at && at < to
		}
		if n, _ := fmt.Sscanf(line, "ShmemPmdMapped: %d kB", &bytes); inside && n == 1 {
			return bytes << 10, nil
		}
	}
	return 0, fmt.Errorf("nothing is said of address %#x", at)
}
