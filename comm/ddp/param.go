package ddp

import "gompi/comm"

// A Param is one parameter of a model in host memory, as ddp sees it: a name for
// messages and two slices of one length. New gives Grad its memory; the backward
// pass adds to it, and the optimiser changes Data.
type Param struct {
	Name string
	Data []float32
	Grad []float32
}

// A Tensor is one parameter of a model in device memory: what a Param is, with
// Buffers of one Type and length. NewOn gives Grad its memory.
type Tensor struct {
	Name string
	Data comm.Buffer
	Grad comm.Buffer
}
