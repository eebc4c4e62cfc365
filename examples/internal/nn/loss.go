package nn

import (
	"math"
	"slices"
)

// CrossEntropy returns the sum over samples of -ln p(target), where p is the softmax of a row of
// logits, and replaces logits by scale times the gradient of that sum.
func CrossEntropy(logits Matrix, targets []byte, scale float32) float64 {
	var sum float64
	for i, target := range targets {
		row := logits.Data[i*logits.Stride:][:logits.Cols]
		top := slices.Max(row) // subtracted, so that nothing overflows
		logit := float64(row[target] - top)
		var norm float64
		for j, v := range row {
			e := math.Exp(float64(v - top))
			row[j] = float32(e)
			norm += e
		}
		sum += math.Log(norm) - logit
		k := scale / float32(norm)
		for j := range row {
			row[j] *= k
		}
		row[target] -= scale
	}
	return sum
}

// Hits returns the number of samples whose target is among the k largest logits.
func Hits(logits Matrix, targets []byte, k int) int {
	hits := 0
	for i, target := range targets {
		row := logits.Data[i*logits.Stride:][:logits.Cols]
		larger := 0
		for j, v := range row {
			// Of equal logits the first is taken. NaN is no hit.
			if v > row[target] || v == row[target] && j < int(target) || v != v {
				larger++
			}
		}
		if larger < k {
			hits++
		}
	}
	return hits
}

// SquaredError returns the sum of (y - target)², and replaces y by scale times the gradient of that
// sum.
func SquaredError(y Matrix, targets []float32, scale float32) float64 {
	var sum float64
	for i, t := range targets {
		d := y.Data[i] - t
		sum += float64(d) * float64(d)
		y.Data[i] = 2 * scale * d
	}
	return sum
}
