package comm_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/transport/shm"
)

// overMemory runs fn on n goroutine ranks that are connected by shared memory, as
// the processes of one host are.
func overMemory(t testing.TB, n int, fn rankFunc) []error {
	t.Helper()
	return overMemoryWith(t, n, comm.Config{}, fn)
}

func overMemoryWith(t testing.TB, n int, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	boots, s := withMemory(t, n)
	defer s.Close()
	return overBoots(t, boots, cfg, fn)
}

// withMemory returns the boots of n ranks, and the segment that they share.
func withMemory(t testing.TB, n int) ([]boot.Boot, *seg.Segment) {
	t.Helper()
	ranks, bells := make([]int, n), make([]int, n)
	for i := range n {
		ranks[i], bells[i] = i, eventfd(t)
	}
	s, err := seg.New(ranks)
	if err != nil {
		t.Fatal(err)
	}
	boots := boot.Group(n)
	for i, b := range boots {
		info := b.Info()
		info.Segment, info.Bells = s, append([]int(nil), bells...)
		// A rank closes its own doorbell, which the others may still ring.
		if info.Bells[i], err = unix.Dup(bells[i]); err != nil {
			t.Fatal(err)
		}
	}
	return boots, s
}

func eventfd(t testing.TB) int {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestCollectivesOverSharedMemoryAgreeWithTheReference(t *testing.T) {
	collectivesAgree(t, overMemory)
}

// A rank that got no memory talks to the others of its host by TCP, and they to it.
func TestARankMayLackTheMemoryOfItsHost(t *testing.T) {
	collectivesAgree(t, func(t testing.TB, n int, fn rankFunc) []error {
		boots, s := withMemory(t, n)
		defer s.Close()
		for _, lacks := range []int{n - 1, 0}[:(n+1)/3] {
			info := boots[lacks].Info()
			info.Segment, info.Bells = nil, nil
		}
		return overBoots(t, boots, comm.Config{}, fn)
	})
}

// The host segment knows nothing of rings, but has room for all of them.
func TestTheSegmentHasRoomForTheRingsOfAnyHost(t *testing.T) {
	for n := 1; n <= shm.MaxRanks; n++ {
		if size := shm.Size(n); size > seg.AreaSize(n) {
			t.Errorf("%d ranks want %d bytes, the segment's area has %d", n, size, seg.AreaSize(n))
		}
	}
}
