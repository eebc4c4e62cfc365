package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/world"
)

// Collectives of ordinary memory that ranks reach through the kernel.

const (
	alwaysCrossed = "shm.read=1;shm.trial=never"
	neverCrossed  = "shm.trial=never"
	oftenTried    = "shm.trial=1"
)

// crossed runs fn on ranks of one host that may reach each other's memory.
func crossed(t testing.TB, n int, tuning string, fn rankFunc) error {
	t.Helper()
	boots, s := withMemory(t, n)
	defer s.Close()
	for i := range s.Ranks() {
		s.Rank(world.LocalRank(i)).Join() // it says which process the rank is
	}
	return errors.Join(overBoots(t, boots, comm.Config{Tuning: tuning}, fn)...)
}

// needCrossing leaves out a test where the kernel reads no process for us.
func needCrossing(t *testing.T) {
	t.Helper()
	from, to := make([]byte, 8), make([]byte, 8)
	local := unix.Iovec{Base: &to[0]}
	local.SetLen(len(to))
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&from[0])), Len: len(from)}
	if _, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0); err != nil {
		t.Skipf("left out: %v", err)
	}
}

// Where the receiver reads messages sooner than they come through the ring, ranks may send those of
// eager size before they receive, all the same.
func TestRanksThatReadMessagesMaySendFirst(t *testing.T) {
	needCrossing(t)
	for _, size := range []int{16<<10 - 1, 16 << 10, 64 << 10} {
		err := crossed(t, 2, "shm.read=16k", func(ctx context.Context, c *comm.Comm) error {
			out, in := make([]byte, size), make([]byte, size)
			for i := range 100 {
				out[0], out[size-1] = byte(i), byte(c.Rank())
				if err := comm.Send(ctx, c, 1-c.Rank(), 0, out); err != nil {
					return err
				}
				if i%3 == 0 { // else the receive is posted before the message comes
					if err := c.Barrier(ctx); err != nil {
						return err
					}
				}
				if _, err := comm.Recv(ctx, c, 1-c.Rank(), 0, in); err != nil || in[0] != byte(i) ||
					in[size-1] != byte(1-c.Rank()) {
					return fmt.Errorf("%v, and %d to %d came: want %d to %d", err, in[0], in[size-1],
						byte(i), 1-c.Rank())
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestCollectivesOnOrdinaryMemoryAgreeWithTheReference(t *testing.T) {
	needCrossing(t)
	for p, tuning := range map[int]string{2: alwaysCrossed, 3: oftenTried, 5: alwaysCrossed} {
		err := crossed(t, p, tuning, func(ctx context.Context, c *comm.Comm) error {
			return allocated(ctx, c, reals[float64](), 8_011, mixtures, comm.Sum, comm.Avg, comm.Max)
		})
		if err != nil {
			t.Errorf("np=%d, %s: %v", p, tuning, err)
		}
	}
}

// No profile and no setting of what goes through the kernel changes a bit. A call that goes so
// takes two steps, and one more where ranks ask each other about devices.
func TestSumsOfOrdinaryMemoryAreTheSameBits(t *testing.T) {
	needCrossing(t)
	const n, calls = 50_001, 100
	for _, p := range []int{2, 3} {
		var want []uint32
		for _, test := range []struct {
			tuning string
			most   uint64 // steps of each call, 0 if that is left open
		}{{neverCrossed, 0}, {"shm.read=1k;shm.trial=never", 3}, {oftenTried, 0}, {"", 0},
			{"shm.read=1;shm.read.below=100k", 0}} {
			var got []uint32
			err := crossed(t, p, test.tuning, func(ctx context.Context, c *comm.Comm) error {
				send, v := rough(c.Rank(), n), make([]float32, n)
				for i := range calls {
					before := inside(c).Steps()
					if err := comm.Allreduce(ctx, c, send, v, comm.Sum); err != nil {
						return err
					}
					if took := inside(c).Steps() - before; i > 0 && test.most > 0 && took > test.most {
						return fmt.Errorf("call %d took %d steps, want at most %d", i, took, test.most)
					}
					if i > 0 && c.Rank() == 0 {
						if err := equal("bits", bitsOf(v), got); err != nil {
							return fmt.Errorf("call %d: %w", i, err)
						}
					} else if c.Rank() == 0 {
						got = bitsOf(v)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatalf("np=%d, %q: %v", p, test.tuning, err)
			}
			if want == nil {
				want = got
			}
			if err := equal("bits", got, want); err != nil {
				t.Errorf("np=%d, %q: %v", p, test.tuning, err)
			}
		}
	}
}

// A rank whose memory is not there breaks its communicator: no rank crashes, and no rank waits.
func TestMemoryThatIsNotThereBreaksTheCommunicator(t *testing.T) {
	needCrossing(t)
	gone, err := unix.Mmap(-1, 0, 300_000, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(gone)
	if err := unix.Mprotect(gone[os.Getpagesize():], unix.PROT_NONE); err != nil { // all but its beginning
		t.Fatal(err)
	}
	err = crossed(t, 3, alwaysCrossed, func(ctx context.Context, c *comm.Comm) error {
		v := gone
		if c.Rank() != 1 {
			v = make([]byte, len(gone))
		}
		d, err := c.Dup(ctx) // which c outlives
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		err = comm.Bcast(ctx, d, 1, v)
		if !errors.Is(err, comm.ErrRevoked) || !strings.Contains(err.Error(), "could not reach the memory of rank") ||
			!strings.Contains(err.Error(), "bcast") {
			return fmt.Errorf("%v: want ErrRevoked, and what could not be reached in which call", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A collective whose trial waits in vain for a rank ends by its context, with that as the reason.
func TestATrialEndsWithItsContext(t *testing.T) {
	needCrossing(t)
	over := make(chan struct{})
	crossed(t, 2, "shm.read=1;shm.trial=1", func(ctx context.Context, c *comm.Comm) error {
		v := make([]float64, 1<<17)
		for range 8 {
			if err := comm.Bcast(ctx, c, 0, v); err != nil {
				t.Error(err)
			}
		}
		if c.Rank() == 1 {
			<-over
			return nil
		}
		defer close(over)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if err := comm.Bcast(short, c, 0, v); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a bcast that waits for rank 1 returned %v, want that its deadline is exceeded", err)
		}
		return nil
	})
}

// Where a rank cannot reach the others' memory, all of them do without.
func TestCollectivesWhereTheKernelRefuses(t *testing.T) {
	boots, s := withMemory(t, 3)
	defer s.Close()
	for i := range s.Ranks() {
		if i != 1 { // of this one no rank knows the process
			s.Rank(world.LocalRank(i)).Join()
		}
	}
	err := errors.Join(overBoots(t, boots, comm.Config{Tuning: alwaysCrossed},
		func(ctx context.Context, c *comm.Comm) error {
			if err := allocated(ctx, c, integers[int64](), 8_011, mixtures, comm.Sum); err != nil {
				return err
			}
			before := inside(c).Steps()
			if err := comm.Bcast(ctx, c, 0, make([]byte, 1<<20)); err != nil {
				return err
			}
			if took := inside(c).Steps() - before; took < 4 {
				return fmt.Errorf("a bcast of 1 MiB took %d steps, want many: through bounce buffers", took)
			}
			return nil
		})...)
	if err != nil {
		t.Error(err)
	}
}
