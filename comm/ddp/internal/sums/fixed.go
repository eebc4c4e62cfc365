package sums

import (
	"fmt"
	"math"
)

// A FixedPoint makes gradients multiples of a quantum, as int64, whose sum is the same in any order
// and on any number of ranks.
type FixedPoint struct {
	quantum float64
	most    float64 // largest magnitude of an addend, so that no sum overflows
}

// NewFixedPoint is for sums of so many addends.
func NewFixedPoint(quantum float64, addends int) FixedPoint {
	return FixedPoint{quantum, quantum * float64((1<<62)/max(1, addends))}
}

// Of returns v in multiples of the quantum, rounded to the nearest. ok is false if v is too large,
// or NaN.
func (f FixedPoint) Of(v float32) (x int64, ok bool) {
	if !(math.Abs(float64(v)) <= f.most) {
		return 0, false
	}
	return int64(math.RoundToEven(float64(v) / f.quantum)), true
}

// Float returns x multiples of the quantum.
func (f FixedPoint) Float(x int64) float32 { return float32(float64(x) * f.quantum) }

// OutOfRange is the error for gradients that are too large.
func (f FixedPoint) OutOfRange(names string) error {
	return fmt.Errorf("gradients of %s are not finite, or larger than %.3g: want a Quantum of more than %g, or smaller gradients",
		names, f.most, f.quantum)
}
