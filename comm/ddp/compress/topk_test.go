package compress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// sortedLargest is find by sorting.
func sortedLargest(x []float32, k int) []uint32 {
	all := make([]uint32, len(x))
	for i := range all {
		all[i] = uint32(i)
	}
	slices.SortStableFunc(all, func(i, j uint32) int { return cmp.Compare(magnitude(x[j]), magnitude(x[i])) })
	all = all[:k]
	slices.Sort(all)
	return all
}

func TestLargestAreThoseOfASort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inputs := map[string]func() float32{
		"normal":      func() float32 { return float32(r.NormFloat64()) },
		"any bits":    func() float32 { return math.Float32frombits(r.Uint32()) },
		"few values":  func() float32 { return float32(r.IntN(5) - 2) },
		"equal":       func() float32 { return 1 },
		"zero":        func() float32 { return 0 },
		"close":       func() float32 { return math.Float32frombits(0x3f800000 + uint32(r.IntN(3))) },
		"one in many": func() float32 { return float32(1 / (1 + r.IntN(1000))) },
	}
	var l largest
	for name, number := range inputs {
		for _, n := range []int{1, 2, 3, 10, 1000} {
			x := make([]float32, n)
			for i := range x {
				x[i] = number()
			}
			for _, k := range []int{1, 2, n / 3, n - 1, n} {
				if k < 1 || k > n {
					continue
				}
				got := make([]uint32, k)
				l.find(got, x)
				if want := sortedLargest(x, k); !slices.Equal(got, want) {
					t.Errorf("%s: the %d largest of %d are at %v, want %v", name, k, n, got, want)
				}
			}
		}
	}
}

func TestTopKAddsUpTheLargestOfEachRank(t *testing.T) {
	const ranks, n = 3, 500
	for _, tc := range []struct {
		ratio float64
		k     int
	}{{0.0001, 1}, {0.01, 5}, {0.29, 145}, {1, 500}} {
		commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
			b := newBucket([]int{n - 7}, []int{7})
			random(b.Grads, c.Rank(), 0)
			if err := topk(t, tc.ratio).Average(ctx, c, b); err != nil {
				return err
			}
			want, x := make([]float32, n), make([]float32, n)
			for rank := range ranks {
				random(x, rank, 0)
				for _, i := range sortedLargest(x, tc.k) {
					want[i] += x[i] / ranks
				}
			}
			if !slices.Equal(b.Grads, want) {
				return fmt.Errorf("ratio %g: got %v, want %v", tc.ratio, b.Grads, want)
			}
			return nil
		})
	}
}

// A small gradient that is always the same is sent when enough of it has come together.
func TestWhatIsNotSentIsAddedToTheNextGradient(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		h, b := topk(t, 0.5), newBucket([]int{1}, []int{1})
		for b.Step = range 4 {
			b.Grads[0], b.Grads[1] = 3, 1
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			// After three steps 3 is remembered of the second number, as much as the first has,
			// which goes first; then 4 of it.
			want := [][]float32{{3, 0}, {3, 0}, {3, 0}, {0, 4}}[b.Step]
			if !slices.Equal(b.Grads, want) {
				return fmt.Errorf("step %d: got %v, want %v", b.Step, b.Grads, want)
			}
		}
		return nil
	})
}
