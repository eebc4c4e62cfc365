package nn

import (
	"math"
	"slices"
)

// crossEntropy returns the sum over samples of -ln p(target), where p is the
// softmax of a row of logits, and replaces logits by scale times the gradient
// of that sum.
func crossEntropy(logits Matrix, targets []byte, scale float32) float64 {
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
