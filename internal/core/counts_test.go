package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/comm"
)

// Lengths of a block as its sender and its receiver see it, in int64: short ones
// go at once, long ones on request.
var disagreements = [][2]int{{3, 4}, {4, 3}, {0, 5}, {5, 0}, {10, 40_000}, {40_000, 10}, {40_000, 40_001},
	{40_001, 40_000}, {0, 40_000}, {40_000, 0}}

// A pair is a call in which what one rank sends and another receives have
// lengths of their own.
type pair struct {
	kind     string
	from, to int
	call     func(ctx context.Context, c *comm.Comm, sent, received int) error
}

func pairs(p int) []pair {
	v := func(n int) []int64 { return make([]int64, n) }
	one := func(i, n int) []int { // one block of n elements
		counts := make([]int, p)
		counts[i] = n
		return counts
	}
	own := func(c *comm.Comm, rank, n int) []int64 { // n elements on one rank
		if c.Rank() != rank {
			n = 0
		}
		return v(n)
	}
	last := p - 1
	return []pair{
		{"gatherv", last, 0, func(ctx context.Context, c *comm.Comm, sent, received int) error {
			return comm.Gatherv(ctx, c, 0, own(c, last, sent), v(received), one(last, received), nil)
		}},
		{"scatterv", 0, last, func(ctx context.Context, c *comm.Comm, sent, received int) error {
			return comm.Scatterv(ctx, c, 0, v(sent), own(c, last, received), one(last, sent), nil)
		}},
		{"alltoallv", last, 0, func(ctx context.Context, c *comm.Comm, sent, received int) error {
			out, in := make([]int, p), make([]int, p)
			if c.Rank() == last {
				out = one(0, sent)
			}
			if c.Rank() == 0 {
				in = one(last, received)
			}
			return comm.Alltoallv(ctx, c, v(sumOf(out)), out, nil, v(sumOf(in)), in, nil)
		}},
	}
}

func TestBlocksOfDifferentLengthsAreAMismatchWithBothByteCounts(t *testing.T) {
	for _, p := range []int{2, 3, 20} { // the last in several batches
		for _, pair := range pairs(p) {
			for _, d := range disagreements {
				for _, late := range []int{-1, pair.from, pair.to} {
					blocksDisagree(t, p, pair, d[0], d[1], late)
				}
			}
		}
	}
}

func blocksDisagree(t *testing.T, p int, on pair, sent, received, late int) {
	t.Helper()
	what := fmt.Sprintf("%s, np=%d, %d elements sent and %d expected, rank %d late", on.kind, p, sent, received, late)
	outcomes(t, p, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == late {
			time.Sleep(10 * time.Second) // of the bubble's clock
		}
		start := time.Now()
		err := on.call(ctx, c, sent, received)
		if err == nil {
			err = next(ctx, c)
		}
		var m *comm.MismatchError
		switch {
		case !errors.As(err, &m) || !errors.Is(err, comm.ErrMismatch):
			t.Errorf("%s: rank %d: got %v, want ErrMismatch", what, c.Rank(), err)
		case m.Rank != on.to || m.Peer != on.from || m.Block.Bytes != int64(8*received) ||
			m.PeerBlock.Bytes != int64(8*sent):
			t.Errorf("%s: rank %d: %v", what, c.Rank(), err)
		case time.Since(start) > 11*time.Second || (c.Rank() == late || late < 0) && time.Since(start) > time.Second:
			t.Errorf("%s: rank %d: took %v", what, c.Rank(), time.Since(start))
		}
		return nil
	})
}

// Counts that all ranks must give alike, of which one rank's are others with the
// same sum.
func TestCountsThatMustBeEqualAreCompared(t *testing.T) {
	const p = 4
	calls := map[string]func(ctx context.Context, c *comm.Comm, counts []int) error{
		"allgatherv": func(ctx context.Context, c *comm.Comm, counts []int) error {
			return comm.Allgatherv(ctx, c, make([]int64, counts[c.Rank()]), make([]int64, sumOf(counts)), counts, nil)
		},
		"reducescatter": func(ctx context.Context, c *comm.Comm, counts []int) error {
			return comm.ReduceScatter(ctx, c, make([]int64, sumOf(counts)), make([]int64, counts[c.Rank()]),
				counts, comm.Sum)
		},
	}
	for kind, call := range calls {
		for _, unit := range []int{1, 1000, 50_000} {
			for odd := range p {
				for _, deterministic := range []bool{false, true} {
					withConfig(t, p, comm.Config{Deterministic: deterministic},
						func(ctx context.Context, c *comm.Comm) error {
							counts := []int{unit, unit, unit, unit}
							if c.Rank() == odd { // about blocks of others than itself
								counts[(odd+2)%p]--
								counts[(odd+3)%p]++
							}
							err := call(ctx, c, counts)
							if err == nil {
								err = next(ctx, c)
							}
							if !errors.Is(err, comm.ErrMismatch) || !strings.Contains(err.Error(), kind+"(") {
								t.Errorf("%s of blocks of %d, other counts on rank %d: rank %d: got %v, want ErrMismatch", kind, unit, odd, c.Rank(), err)
							}
							c.Close(ctx)
							return nil
						})
				}
			}
		}
	}
}
