package core_test

import (
	"context"
	"errors"
	"testing"

	"gompi/comm"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/seg"
	"gompi/internal/stress"
	"gompi/transport/shm"

	"golang.org/x/sys/unix"
)

// Many ranks of one host.

// ofMany are the questions to many ranks, of each kind and length one in each variant.
func ofMany(p int, lengths ...int) (qs []question) {
	for i, kind := range everyKind {
		for j, n := range lengths {
			q := question{kind: kind, ranks: p, n: n, root: (p - 1) * (j % 2), gaps: j%2 == 0, inPlace: (i+j)%2 == 0}
			if reduces(kind) {
				q.op = comm.Sum
			}
			qs = append(qs, q)
		}
	}
	return qs
}

// taken returns how much memory there is behind a segment.
func taken(t *testing.T, s *seg.Segment) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(s.FD(), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// ofManyRanks makes ranks that share a segment answer all questions, and returns how much memory
// they took besides what the segment begins with.
func ofManyRanks(t *testing.T, p int, shares bool, qs []question) int64 {
	t.Helper()
	boots, s := withMemory(t, p)
	defer s.Close()
	before := taken(t, s)
	err := errors.Join(overBoots(t, boots, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		if inside(c).SharesMemory() != shares {
			return errors.New("shared memory where there should be none, or none")
		}
		return answerAll(ctx, c, integers[int16](), qs)
	})...)
	if err != nil {
		t.Errorf("np=%d: %v", p, err)
	}
	return taken(t, s) - before
}

// A rank takes one block and one stage for the world, whatever its collectives, besides
// the rings through which those who wait for long say what they wait for.
func TestManyRanksToAProcessorAgreeWithTheReferenceInBoundedMemory(t *testing.T) {
	stress.Long(t, "many ranks take their time")
	for _, tt := range []struct {
		ranks   int
		lengths []int
	}{{64, []int{1, 100, 3000}}, {path.MaxShared, []int{1, 100}}} {
		most := int64(tt.ranks)*int64(shmsync.BlockSize+path.LargeBuffer(tt.ranks)) + int64(shm.Size(tt.ranks))
		n := ofManyRanks(t, tt.ranks, true, ofMany(tt.ranks, tt.lengths...))
		if t.Logf("np=%d: %d bytes of at most %d", tt.ranks, n, most); n == 0 || n > most {
			t.Errorf("np=%d: %d bytes of shared memory, want at most %d", tt.ranks, n, most)
		}
	}
}

// Ranks of which there is one too many for shared memory go by messages, through the rings of the
// same memory.
func TestARankTooManyForSharedMemoryGoesByMessages(t *testing.T) {
	stress.Long(t, "many ranks take their time")
	const p = path.MaxShared + 1
	if n := ofManyRanks(t, p, false, ofMany(p, 1, 100)); n < p*shmsync.BlockSize/2 {
		t.Errorf("%d bytes of shared memory: that is no rings", n)
	}
}
