package measure

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/internal/mem"
)

// A training is the communication of data-parallel training: a model's gradients, averaged over the
// ranks by package ddp in its buckets. No gradient is computed.
type training struct {
	d     *ddp.DDP
	grads []mem.Buffer // of each parameter
}

// trainingOperations are a step of each model: gradients are announced from the last parameter to
// the first, as in a backward pass, and averaged.
func trainingOperations() []operation {
	var ops []operation
	for _, model := range Models() {
		ops = append(ops, operation{name: "ddp-" + model.Name, model: &model, blocks: each(0, 0),
			run: runStep, parts: averaged, volume: times(1), bus: twiceOthers})
	}
	return ops
}

// newTraining prepares the training of a model with elements of type t, in the memory of q's device
// or, if q is nil, in host memory.
func newTraining(ctx context.Context, c *comm.Comm, m *Model, t mem.Type, q ddp.Stream) (*training, error) {
	if q == nil {
		return newHostTraining(ctx, c, m, t)
	}
	var tensors []*ddp.Tensor
	for i, n := range m.Lengths {
		data, err := q.Space().Alloc(t, n)
		if err != nil {
			return nil, err
		}
		defer q.Space().Free(data) // only NewOn needs it
		tensors = append(tensors, &ddp.Tensor{Name: fmt.Sprint(i), Data: data})
	}
	d, err := ddp.NewOn(ctx, c, q, tensors, ddp.Options{})
	if err != nil {
		return nil, err
	}
	if err := q.Sync(); err != nil { // gradients are zeroed before prepare bypasses the stream
		return nil, err
	}
	tr := &training{d: d}
	for _, p := range tensors {
		tr.grads = append(tr.grads, p.Grad)
	}
	return tr, nil
}

func newHostTraining(ctx context.Context, c *comm.Comm, m *Model, t mem.Type) (*training, error) {
	if t != mem.F32 {
		return nil, fmt.Errorf("gradients of %v in host memory: want %v", t, mem.F32)
	}
	var params []*ddp.Param
	for i, n := range m.Lengths {
		params = append(params, &ddp.Param{Name: fmt.Sprint(i), Data: make([]float32, n)})
	}
	d, err := ddp.New(ctx, c, params, ddp.Options{})
	if err != nil {
		return nil, err
	}
	tr := &training{d: d}
	for _, p := range params {
		tr.grads = append(tr.grads, comm.Of(p.Grad))
	}
	return tr, nil
}

// gradients returns the gradients of t, none if t is nil.
func (t *training) gradients() []mem.Buffer {
	if t == nil {
		return nil
	}
	return slices.Clone(t.grads)
}

func runStep(k *cell) error {
	for i := range slices.Backward(k.training.grads) {
		k.training.d.Ready(i)
	}
	return k.training.d.Finish(k.ctx)
}

// averaged expects the average of each gradient. A gradient begins with the rank's pattern.
func averaged(k *cell) ([]part, error) {
	want, err := k.inputs.reduced(mem.Avg, k.np)
	var parts []part
	for _, g := range k.training.grads {
		parts = append(parts, part{g, want, 0})
	}
	return parts, err
}
