package ddp

import "gompi/comm"

// A Param is one parameter of a model in host memory, as ddp sees it: a name for
// messages and two slices of one length. New gives Grad its memory; whoever computes
// gradients adds to it, and whoever optimises changes Data.
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

// A Queue is the work of a device, done in the order given, after the calls that
// put it there have returned: a *cudaops.Stream is one. Gradients are computed on it.
// One goroutine at a time uses a Queue.
type Queue interface {
	// Space is the memory of the device.
	Space() comm.Space
	// Clear puts the zeroing of b on the Queue.
	Clear(b comm.Buffer) error
	// NewMark returns a Mark for points of the Queue's work.
	NewMark() (comm.Mark, error)
	// Sync waits for all work of the Queue.
	Sync() error
}
