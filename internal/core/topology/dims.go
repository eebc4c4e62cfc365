// Package topology defines neighbors among the ranks of a communicator, by grids and graphs, and
// exchanges messages between neighbors. Faces build the neighborhood collectives on it.
package topology

import (
	"fmt"
	"math"
	"slices"

	"gompi/internal/core"
)

// Dims fills in the dimensions that are 0, so that a grid of dims has n places: as equal as
// possible, the first the longest (MPI_Dims_create). Other dimensions stay unchanged, and have to
// divide n. For 12 ranks, 0 and 0 become 4 and 3; 0, 2 and 0 become 3, 2 and 2.
func Dims(n int, dims []int) error {
	if n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("dims: %w: %d ranks: want 1 to %d", core.ErrArgument, n, math.MaxInt32)
	}
	rest, free := n, 0
	for i, d := range dims {
		switch {
		case d < 0:
			return fmt.Errorf("dims: %w: dims[%d] is %d: want 0 or more", core.ErrArgument, i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return fmt.Errorf("dims: %w: dims[%d] is %d: want a divisor of %d", core.ErrArgument, i, d, rest)
		default:
			rest /= d
		}
	}
	switch {
	case free == 0 && rest > 1:
		return fmt.Errorf("dims: %w: the grid %v has %d places: want %d", core.ErrArgument, dims, n/rest, n)
	case free == 0:
		return nil
	}
	lengths := evenly(rest, free)
	for i, d := range dims {
		if d == 0 {
			dims[i], lengths = lengths[0], lengths[1:]
		}
	}
	return nil
}

// evenly returns k factors of n, the greatest first. The greatest and the smallest differ as
// little as possible; of several such results the one with the greatest smallest factor is taken,
// then with the next.
func evenly(n, k int) (best []int) {
	divisors, spread := divisorsOf(n), n
	for _, least := range divisors {
		for power(least, k) <= n && power(least+spread-1, k) >= n {
			rest, ok := within(divisors, n/least, k-1, least, least+spread-1)
			if !ok {
				break
			}
			best = append([]int{least}, rest...)
			spread = best[k-1] - least
		}
	}
	slices.Reverse(best)
	return best
}

// divisorsOf returns the divisors of n, the greatest first.
func divisorsOf(n int) (all []int) {
	for d := 1; d*d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
			if d*d < n {
				all = append(all, n/d)
			}
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// within returns k factors of n from least to most, the smallest first and as great as can be.
func within(divisors []int, n, k, least, most int) ([]int, bool) {
	if k == 0 {
		return nil, n == 1
	}
	if power(most, k) < n {
		return nil, false
	}
	for _, d := range divisors {
		if d < least {
			break
		}
		if d > most || n%d != 0 || power(d, k) > n {
			continue
		}
		if rest, ok := within(divisors, n/d, k-1, d, most); ok {
			return append([]int{d}, rest...), true
		}
	}
	return nil, false
}

// power returns the kth power of n, or a number above all counts of ranks.
func power(n, k int) int { return int(min(math.Pow(float64(n), float64(k)), math.MaxInt32+1)) }
