package compress

import (
	"context"
	"fmt"
	"math"

	"gompi/comm"
	"gompi/comm/ddp"
)

// TopK returns a Hook that sends the numbers of largest magnitude of each bucket: ratio of them,
// above 0 and at most 1, rounded, but at least one. A rank keeps the unsent numbers and adds them
// to its next gradient (error feedback), so that all arrive in time. The ranks' numbers, each
// divided by the number of ranks, are added in the order of the ranks, and all others are zero. Of
// equal magnitudes, the first in the bucket is sent.
//
// A bucket of n numbers costs an allgather of k = ratio*n numbers with their indexes: 8*k bytes
// from each of p ranks to each other. That is less than the allreduce of float32 only if ratio is
// below 1/p, and grows with p, unlike the allreduce. TopK takes seven passes over the bucket, and
// four bytes of memory for each number of the model. A number that is not finite is an error on all
// ranks, since it would be kept forever.
//
// Source: Lin, Han, Mao, Wang and Dally, "Deep Gradient Compression" (ICLR 2018), without its
// corrections for momentum; Stich, Cordonnier and Jaggi, "Sparsified SGD with Memory" (NeurIPS
// 2018).
func TopK(ratio float64) (ddp.Hook, error) {
	if !(ratio > 0 && ratio <= 1) {
		return nil, fmt.Errorf("compress: TopK: ratio is %g: want more than 0 and at most 1", ratio)
	}
	return &topK{ratio: ratio, states: states{}}, nil
}

type topK struct {
	ratio  float64
	states states

	largest largest
	own     []uint32 // indexes in the bucket, in ascending order, then as many numbers' bits
	all     []uint32 // the same of all ranks
}

func (h *topK) String() string { return fmt.Sprintf("topk of %g", h.ratio) }

// Memory returns, for each rank, the unsent errors.
func (h *topK) Memory(params []*ddp.Param) (m ddp.Memory, err error) {
	all, err := h.states.begin(params)
	if err != nil {
		return m, fmt.Errorf("topk: %w", err)
	}
	for i, s := range all {
		m.Own = append(m.Own, ddp.Slice{Name: "topk.error/" + params[i].Name, Data: comm.Of(s.errors)})
	}
	return m, nil
}

func (h *topK) Average(ctx context.Context, c *comm.Comm, b *ddp.Bucket) error {
	n := len(b.Grads)
	switch {
	case n == 0:
		return nil
	case n > math.MaxUint32:
		return fmt.Errorf("topk: a bucket has %d numbers: want at most %d", n, uint32(math.MaxUint32))
	}
	k := max(1, int(math.Round(h.ratio*float64(n))))
	h.own, h.all = resize(h.own, 2*k), resize(h.all, 2*k*c.Size())
	if err := h.take(b, k); err != nil {
		return err
	}
	if err := comm.Allgather(ctx, c, h.own, h.all); err != nil {
		return err
	}
	return h.add(b, k, c.Size())
}

// take adds the errors to the gradients, puts the largest numbers into own, and keeps the rest as
// errors.
func (h *topK) take(b *ddp.Bucket, k int) error {
	for _, p := range b.Params {
		s, err := h.states.of(p, b.Step)
		if err != nil {
			return err
		}
		addScaled(p.Grad, s.errors, 1)
	}
	places, bits := h.own[:k], h.own[k:]
	h.largest.find(places, b.Grads)
	for i, at := range places {
		bits[i] = math.Float32bits(b.Grads[at])
		b.Grads[at] = 0
	}
	for _, p := range b.Params {
		copy(h.states[p.Name].errors, p.Grad)
	}
	return nil
}

// add sets the gradients to the average of the sent numbers.
func (h *topK) add(b *ddp.Bucket, k, ranks int) error {
	clear(b.Grads)
	for rank := range ranks {
		from := h.all[2*k*rank:][:2*k]
		places, bits := from[:k], from[k:]
		for i, at := range places {
			v := math.Float32frombits(bits[i])
			if !finite(v) {
				return notFinite(rank, nameAt(b, int(at)))
			}
			b.Grads[at] += v / float32(ranks)
		}
	}
	return nil
}

// nameAt returns the name of the parameter with number i of b.
func nameAt(b *ddp.Bucket, i int) string {
	for _, p := range b.Params {
		if i -= len(p.Grad); i < 0 {
			return p.Name
		}
	}
	return ""
}
