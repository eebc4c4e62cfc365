package cudann

import (
	_ "embed"
	"fmt"

	"gompi/cudaops"
)

// The kernels of network.cu as text, which the driver compiles for any device since Turing. `make
// ptx` writes the text.
//
//go:embed network_sm75.ptx
var ptx string

// The parameters of the kernels, as in network.cu. Fields named after data are addresses of device
// memory.
type (
	lookupArgs struct {
		table, bytes, x uint64
		n, width        uint64
	}
	layerArgs struct {
		y, bias    uint64
		rows, cols uint64
		relu       uint64
	}
	reluArgs struct {
		y, gradient uint64
		n           uint64
	}
	lossArgs struct {
		logits, targets, losses uint64
		rows, cols              uint64
		scale                   float32
		_                       uint32
	}
	adamArgs struct {
		data, gradient, mean, square uint64
		n                            uint64

		k, root, keepMean, addMean, keepSquare, addSquare, least float32
		_                                                        uint32
	}
	productArgs struct {
		z, x, y                uint64
		m, n, k                uint64
		xRow, xCol, yRow, yCol uint64
		beta                   float32
		_                      uint32
	}
)

// names are the names of all kernels.
var names = []string{"lookup", "lookup_gradient", "activate", "bias_gradient", "relu_gradient", "cross_entropy",
	"adam", "product"}

// An engine enqueues kernels and matrix products on one Stream. An engine keeps its first error, as
// a CUDA context does; callers check it after the last call.
type engine struct {
	d       *cudaops.Device
	s       *cudaops.Stream
	blas    *cudaops.BLAS // nil: products by a kernel
	module  *cudaops.Module
	kernels map[string]cudaops.Kernel
	buffers []cudaops.Buffer // of the device,
	hosts   []cudaops.Buffer // and pinned
	err     error
}

func newEngine(d *cudaops.Device) (*engine, error) {
	e := &engine{d: d, kernels: map[string]cudaops.Kernel{}}
	if e.s, e.err = d.NewStream(); e.err != nil {
		return nil, e.err
	}
	if e.module, e.err = d.LoadPTX(ptx); e.err == nil {
		for _, name := range names {
			k, err := e.module.Kernel(name)
			e.note(err)
			e.kernels[name] = k
		}
	}
	if e.err != nil {
		e.close()
	}
	return e, e.err
}

func (e *engine) note(err error) {
	if e.err == nil {
		e.err = err
	}
}

// launch enqueues a kernel with work for a number of threads.
func launch[Args any](e *engine, name string, threads int, args Args) {
	if e.err != nil || threads == 0 {
		return
	}
	const block = 256
	grid := min((threads+block-1)/block, e.d.Info().Processors*2048/block)
	e.note(cudaops.Launch(e.s, e.kernels[name], grid, block, &args))
}

// multiply enqueues z = x y + beta z.
func (e *engine) multiply(z, x, y cudaops.Matrix, beta float32) {
	switch {
	case e.err != nil:
	case e.blas != nil:
		e.note(e.blas.Multiply(z, x, y, beta))
	default:
		e.multiplyHere(z, x, y, beta)
	}
}

// multiplyHere is multiply by the kernel.
func (e *engine) multiplyHere(z, x, y cudaops.Matrix, beta float32) {
	if e.note(e.d.CheckProduct(z, x, y)); e.err != nil {
		return
	}
	a := productArgs{z: address(z.Elements), x: address(x.Elements), y: address(y.Elements),
		m: uint64(z.Rows), n: uint64(z.Cols), k: uint64(x.Cols), beta: beta}
	strides := func(m cudaops.Matrix) (row, col uint64) {
		r, c := m.Strides()
		return uint64(r), uint64(c)
	}
	a.xRow, a.xCol = strides(x)
	a.yRow, a.yCol = strides(y)
	const side = 4
	launch(e, "product", (z.Rows+side-1)/side*((z.Cols+side-1)/side), a)
}

// copy enqueues a copy; host memory must be pinned.
func (e *engine) copy(dst, src cudaops.Buffer) {
	if e.err == nil {
		e.note(e.s.Copy(dst, src))
	}
}

// close waits for the work, frees everything, and returns the first error of e.
func (e *engine) close() error {
	e.note(e.s.Sync())
	if e.blas != nil {
		e.note(e.blas.Close())
	}
	if e.module != nil {
		e.note(e.module.Close())
	}
	e.note(e.s.Close())
	for _, b := range e.buffers {
		e.d.Free(b)
	}
	for _, b := range e.hosts {
		e.note(e.d.FreeHost(b))
	}
	if e.err != nil {
		return fmt.Errorf("network on %s: %w", e.d.Name(), e.err)
	}
	return nil
}

func address(b cudaops.Buffer) uint64 { return uint64(b.Addr()) }
