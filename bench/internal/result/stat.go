package result

import (
	"cmp"
	"math"
	"slices"
)

// Quantile returns the smallest element x of sorted such that at least the share q, 0 to 1, of the
// elements are at most x; 0 without elements. sorted must be ascending.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// Median returns the middle of xs, the mean of the two in the middle, or 0 without elements. It
// does not change xs.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// GeoMean returns the geometric mean of xs, which are positive, or 0 without elements. It suits
// ratios, since the mean of their inverses is the inverse of their mean.
func GeoMean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	var logs float64
	for _, x := range xs {
		logs += math.Log(x)
	}
	return math.Exp(logs / float64(len(xs)))
}
