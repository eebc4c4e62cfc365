package ddp

import (
	"fmt"

	"gompi/comm"
)

// A Param is one parameter of a model in host memory: a name for messages and two slices of the
// same length. New allocates Grad; the backward pass adds to it, and the optimiser changes Data.
type Param struct {
	Name string
	Data []float32
	Grad []float32
	// Shape is the sizes of its dimensions, for PowerSGD; nil means one dimension.
	Shape []int
	// Row, if not 0, is the length of a row of an embedding's table. Its gradient is sparse: New
	// leaves Grad nil, and ReadyRows replaces Ready.
	Row int
}

// A Tensor is a Param with Buffers of one Type and length, in host or device memory. NewTensors and
// NewOn allocate Grad.
type Tensor struct {
	Name  string
	Data  comm.Buffer
	Grad  comm.Buffer
	Shape []int
	Row   int
}

// A Slice is a named part of a model's or an optimiser's state in a snapshot: numbers of any type
// in host or device memory.
type Slice struct {
	Name string
	Data comm.Buffer
}

// tensors returns params as Tensors of the same memory.
func tensors(params []*Param) []*Tensor {
	ts := make([]*Tensor, len(params))
	for i, p := range params {
		ts[i] = &Tensor{Name: p.Name, Data: comm.Of(p.Data), Shape: p.Shape, Row: p.Row}
	}
	return ts
}

// check returns an error unless t's type has averages and its length is the product of its
// dimensions.
func (t *Tensor) check() error {
	typ, n := t.Data.Type(), t.Data.Len()
	if !comm.Avg.Defined(typ) {
		return fmt.Errorf("ddp: parameter %q has numbers of %v: want a type that has averages", t.Name, typ)
	}
	if t.Shape != nil && size(t.Shape) != n {
		return fmt.Errorf("ddp: parameter %q of %d numbers has the shape %v, which is %d", t.Name, n, t.Shape,
			size(t.Shape))
	}
	switch {
	case t.Row == 0:
		return nil
	case t.Row < 0 || n%t.Row != 0:
		return fmt.Errorf("ddp: parameter %q of %d numbers has rows of %d: want a divisor", t.Name, n, t.Row)
	case typ != comm.TypeOf[float32]() || !t.Data.IsHost():
		return fmt.Errorf("ddp: parameter %q has rows of %v in %s: want float32 in host memory", t.Name, typ,
			t.Data.Space().Name())
	}
	return nil
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
