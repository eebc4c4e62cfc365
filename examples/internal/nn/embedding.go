package nn

import (
	"math/rand/v2"

	"gompi/comm/ddp"
)

// An Embedding maps small numbers to learnt vectors. The vectors for the numbers of one sample are
// contiguous.
type Embedding[I byte | int32] struct {
	Table *ddp.Param // a row of width numbers for each vector
	width int
	per   int // numbers in a sample
	ids   []I
	y     Matrix
}

// NewEmbedding returns an Embedding of the numbers 0 to n-1, with per numbers in a sample. Vectors
// are random with the given deviation.
func NewEmbedding[I byte | int32](name string, n, width, per int, deviation float64, rng *rand.Rand) *Embedding[I] {
	e := &Embedding[I]{Table: newParam(name, n, width), width: width, per: per}
	for i := range e.Table.Data {
		e.Table.Data[i] = float32(rng.NormFloat64() * deviation)
	}
	return e
}

// Forward looks up ids, which has the samples in order. The output is valid until the next Forward.
func (e *Embedding[I]) Forward(ids []I) Matrix {
	e.ids = ids
	y := room(&e.y, len(ids)/e.per, e.per*e.width)
	for i, id := range ids {
		copy(y.Data[i*e.width:][:e.width], e.Table.Data[int(id)*e.width:])
	}
	return y
}

// Backward adds the gradient by the last output to the rows that were used.
func (e *Embedding[I]) Backward(dy Matrix) {
	for i, id := range e.ids {
		row := e.Table.Grad[int(id)*e.width:][:e.width]
		for j, g := range dy.Data[i*e.width:][:e.width] {
			row[j] += g
		}
	}
}
