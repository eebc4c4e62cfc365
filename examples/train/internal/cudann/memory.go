package cudann

import (
	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/cudaops"
)

// alloc returns n zeroed elements, which e.close frees.
func alloc[T comm.Scalar](e *engine, n int) cudaops.Buffer {
	if e.err != nil {
		return cudaops.Buffer{}
	}
	v, err := cudaops.Make[T](e.d, n)
	if e.note(err); err == nil && n > 0 {
		e.buffers = append(e.buffers, v.Buffer())
	}
	return v.Buffer()
}

// tensor returns a copy of p on the device.
func (e *engine) tensor(p *ddp.Param) *ddp.Tensor {
	t := &ddp.Tensor{Name: p.Name, Data: alloc[float32](e, len(p.Data))}
	if e.err == nil {
		e.note(e.d.Copy(t.Data, comm.Of(p.Data)))
	}
	return t
}

// pinned returns n zeroed elements of host memory that the stream can use.
func pinned[T comm.Scalar](e *engine, n int) cudaops.Buffer {
	if e.err != nil {
		return cudaops.Buffer{}
	}
	b, err := e.d.AllocHost(comm.Of[T](nil).Type(), n)
	if e.note(err); err == nil && n > 0 {
		e.hosts = append(e.hosts, b)
	}
	return b
}

// An input is bytes on their way to the device.
type input struct {
	e           *engine
	here, there cudaops.Buffer
}

func newInput(e *engine, n int) *input {
	return &input{e: e, here: pinned[byte](e, n), there: alloc[byte](e, n)}
}

// set enqueues the copy of data. The last copy is done by then: the caller has waited for an output
// of the work behind it.
func (in *input) set(data []byte) {
	if in.e.err != nil {
		return
	}
	here := in.here.Slice(0, len(data))
	copy(comm.Slice[byte](here), data)
	in.e.copy(in.there.Slice(0, len(data)), here)
}

// An output is numbers on their way to the host.
type output struct {
	e           *engine
	here, there cudaops.Buffer
	arrived     comm.Event
}

func newOutput(e *engine, n int) *output {
	o := &output{e: e, here: pinned[float32](e, n), there: alloc[float32](e, n)}
	if e.err == nil {
		o.arrived, e.err = e.s.NewEvent()
	}
	return o
}

// fetch enqueues the copy of the first n numbers.
func (o *output) fetch(n int) {
	if o.e.err == nil {
		o.e.copy(o.here.Slice(0, n), o.there.Slice(0, n))
		o.e.note(o.arrived.Set())
	}
}

// sum waits for the first n numbers and returns their sum.
func (o *output) sum(n int) (float64, error) {
	if o.e.err == nil {
		o.e.note(o.arrived.Wait())
	}
	var sum float64
	if o.e.err == nil {
		for _, v := range comm.Slice[float32](o.here.Slice(0, n)) {
			sum += float64(v)
		}
	}
	return sum, o.e.err
}

func (o *output) close() {
	if o.arrived != nil {
		o.e.note(o.arrived.Close())
	}
}
