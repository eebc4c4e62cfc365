package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/internal/world"
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
	ranks, bells := make([]world.Rank, n), make([]int, n)
	for i := range n {
		ranks[i], bells[i] = world.Rank(i), eventfd(t)
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

// Ranks for which there is no more memory continue with the rings and the blocks that
// they have, also where only some of them got what they asked for.
func TestWithLittleMemoryRanksUseWhatTheyHave(t *testing.T) {
	const p, n = 3, 40_000
	for _, every := range []int64{1, 2} { // claim is refused
		boots, s := withMemory(t, p)
		var asked atomic.Int64
		s.LimitBy(func() seg.Limit {
			return seg.Limit{Left: asked.Add(1) % every << 40, Of: 1 << 40, By: "a test"}
		})
		err := errors.Join(overBoots(t, boots, comm.Config{}, exhaust(n))...)
		var st unix.Stat_t
		if err := unix.Fstat(s.FD(), &st); err != nil || asked.Load() == 0 || every == 1 && st.Blocks*512 > 2<<20 {
			t.Errorf("the ranks asked %d times and took %d bytes, %v", asked.Load(), st.Blocks*512, err)
		}
		if s.Close(); err != nil {
			t.Errorf("one claim in %d is refused: %v", every, err)
		}
	}
}

// exhaust wants all the memory that there can be, with messages and collectives of n
// elements.
func exhaust(n int) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		if !inside(c).SharesMemory() {
			return errors.New("there is no shared memory")
		}
		p, e := c.Size(), integers[int64]()
		from, got := (c.Rank()+p-1)%p, make([]int64, n)
		if _, err := comm.Sendrecv(ctx, c, (c.Rank()+1)%p, 1, e.vector(c.Rank(), n), from, 1, got); err != nil {
			return err
		}
		if err := equal("message", got, e.vector(from, n)); err != nil {
			return err
		}
		for _, kind := range everyKind {
			if err := answerAll(ctx, c, e, questions(kind, p, []int{n}, []comm.Op{comm.Sum})); err != nil {
				return err
			}
		}
		return nil
	}
}

// The host segment knows nothing of rings, but has room for all of them.
func TestTheSegmentHasRoomForTheRingsOfAnyHost(t *testing.T) {
	for n := 1; n <= shm.MaxRanks; n++ {
		if size := shm.Size(n); size > seg.AreaSize(n) {
			t.Errorf("%d ranks want %d bytes, the segment's area has %d", n, size, seg.AreaSize(n))
		}
	}
}
