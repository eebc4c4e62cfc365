package nn

import (
	"math/rand/v2"

	"gompi/comm/ddp"
)

// An embedding turns each byte of a context into a learnt vector; the vectors
// of a context side by side are the first layer's input.
type embedding struct {
	table  *ddp.Param // 256 x width
	width  int
	inputs []byte
	x      Matrix
}

func newEmbedding(rows, context, width int, rng *rand.Rand) *embedding {
	e := &embedding{table: newParam("embedding", 256*width), width: width, x: newMatrix(rows, context*width)}
	for i := range e.table.Data {
		e.table.Data[i] = float32(rng.NormFloat64())
	}
	return e
}

// forward looks up the contexts, which lie one after the other in inputs.
func (e *embedding) forward(inputs []byte) Matrix {
	e.inputs = inputs
	for i, b := range inputs {
		copy(e.x.Data[i*e.width:][:e.width], e.table.Data[int(b)*e.width:])
	}
	return top(e.x, len(inputs)*e.width/e.x.Cols)
}

// backward adds the gradient by the last output to the rows that were used.
func (e *embedding) backward(dx Matrix) {
	for i, b := range e.inputs {
		row := e.table.Grad[int(b)*e.width:][:e.width]
		for j, g := range dx.Data[i*e.width:][:e.width] {
			row[j] += g
		}
	}
}
