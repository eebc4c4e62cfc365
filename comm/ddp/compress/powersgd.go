package compress

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
	"gompi/comm/ddp"
)

// PowerSGDOptions are the settings of PowerSGD.
type PowerSGDOptions struct {
	// Rank is the rank of the sent matrices, at least 1. 1 to 4 are usual.
	Rank int
	// StartStep is the number of first steps with plain averages, counted over all jobs that
	// continue from a snapshot with the Hook's memory. While gradients still change much from step
	// to step, low rank costs accuracy: PyTorch advises to begin after a tenth of training.
	StartStep int
}

// A matrix is compressed if that divides its numbers by more than minGain.
const minGain = 2

// PowerSGD returns a Hook that sends approximations of low rank r of gradients that are matrices. A
// parameter whose Shape has at least two dimensions is a matrix of Shape[0] rows, M. All ranks
// begin with the same random Q of r columns. In each step they average P = M*Q, make the columns of
// P orthonormal, average Q = Mᵀ*P, and M becomes P*Qᵀ: the part of the average of all M that lies
// in the column space of P. Each rank keeps the difference from its own M and adds the difference
// to its next gradient (error feedback). The next step begins with this Q (warm start). A column of
// Q that becomes zero, as all do if a gradient is zero, is replaced by random numbers.
//
// Parameters of one dimension, and matrices of n*m numbers whose P and Q together have half as many
// or more, r*(n+m), are averaged as they are, beside all P of the bucket. So a bucket costs two
// allreduces: one of the uncompressed numbers and of r*n for each matrix, and one of r*m for each.
// Computation takes about 6*r operations for each number. Memory takes four bytes for each number
// of a compressed matrix, and P and Q.
//
// A number that is not finite is an error on all ranks, since its error would be kept forever.
//
// Source: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization" (NeurIPS 2019), algorithms 1 and 2.
func PowerSGD(opts PowerSGDOptions) (ddp.Hook, error) {
	switch {
	case opts.Rank < 1:
		return nil, fmt.Errorf("compress: PowerSGD: Rank is %d: want at least 1", opts.Rank)
	case opts.StartStep < 0:
		return nil, fmt.Errorf("compress: PowerSGD: StartStep is %d: want no negative number", opts.StartStep)
	}
	return &powerSGD{PowerSGDOptions: opts, states: states{}}, nil
}

type powerSGD struct {
	PowerSGDOptions
	states states
	done   [1]uint64 // steps begun, with the steps before the snapshot
	before uint64    // steps before the snapshot
	begun  bool

	// For the present bucket, kept for the next:
	whole    [][]float32 // gradients that are not compressed
	matrices []*matrix
	first    []float32 // operand of the first allreduce: whole, then each P
	second   []float32 // each Q
}

func (h *powerSGD) String() string {
	return fmt.Sprintf("powersgd of rank %d from step %d", h.Rank, h.StartStep)
}

// Memory returns the number of steps, Q and the count of its random columns, and, for each rank,
// the unsent errors.
func (h *powerSGD) Memory(params []*ddp.Param) (m ddp.Memory, err error) {
	var compressed []*ddp.Param
	for _, p := range params {
		if h.compresses(dimensions(p.Shape)) {
			compressed = append(compressed, p)
		}
	}
	all, err := h.states.begin(compressed)
	if err != nil {
		return m, fmt.Errorf("powersgd: %w", err)
	}
	m.Shared = append(m.Shared, ddp.Slice{Name: "powersgd.steps", Data: comm.Of(h.done[:])})
	for i, s := range all {
		name, x := compressed[i].Name, h.matrixOf(s, compressed[i].Name, compressed[i].Shape)
		m.Shared = append(m.Shared, ddp.Slice{Name: "powersgd.q/" + name, Data: comm.Of(x.q)},
			ddp.Slice{Name: "powersgd.drawn/" + name, Data: comm.Of(x.drawn[:])})
		m.Own = append(m.Own, ddp.Slice{Name: "powersgd.error/" + name, Data: comm.Of(x.errors)})
	}
	return m, nil
}

// compresses reports whether a parameter of these dimensions is sent as P and Q.
func (h *powerSGD) compresses(rows, cols int) bool { return minGain*h.Rank*(rows+cols) < rows*cols }

// matrixOf returns the matrix of s, new if there is none.
func (h *powerSGD) matrixOf(s *state, name string, shape []int) *matrix {
	if s.matrix == nil {
		rows, cols := dimensions(shape)
		s.matrix = newMatrix(name, rows, cols, h.Rank, s.errors)
	}
	return s.matrix
}

func (h *powerSGD) Average(ctx context.Context, c *comm.Comm, b *ddp.Bucket) error {
	if h.steps(b) < h.StartStep {
		return comm.Allreduce(ctx, c, b.Grads, b.Grads, comm.Avg)
	}
	if err := h.lay(b); err != nil {
		return err
	}
	h.pack()
	err := h.average(ctx, c, h.first)
	if err == nil {
		h.unpack()
		err = h.average(ctx, c, h.second)
	}
	if err == errNotFinite {
		return findNotFinite(ctx, c, b)
	}
	if err != nil {
		return err
	}
	for _, m := range h.matrices {
		m.restore()
	}
	return nil
}

// steps returns the number of steps before b's, in this job and the jobs that it continues.
func (h *powerSGD) steps(b *ddp.Bucket) int {
	if !h.begun {
		h.begun, h.before = true, h.done[0]
	}
	n := h.before + uint64(b.Step)
	h.done[0] = n + 1
	return int(n)
}

// lay finds the matrices of b, and assigns them their parts of first and second.
func (h *powerSGD) lay(b *ddp.Bucket) error {
	h.whole, h.matrices = h.whole[:0], h.matrices[:0]
	whole, left, right := 0, 0, 0
	for _, p := range b.Params {
		rows, cols := dimensions(p.Shape)
		if !h.compresses(rows, cols) {
			h.whole = append(h.whole, p.Grad)
			whole += len(p.Grad)
			continue
		}
		s, err := h.states.of(p, b.Step)
		if err != nil {
			return err
		}
		m := h.matrixOf(s, p.Name, p.Shape)
		m.grad = p.Grad
		h.matrices = append(h.matrices, m)
		left, right = left+h.Rank*rows, right+h.Rank*cols
	}
	h.first, h.second = resize(h.first, whole+left), resize(h.second, right)
	ps, qs := h.first[whole:], h.second
	for _, m := range h.matrices {
		m.p, ps = ps[:m.rank*m.rows], ps[m.rank*m.rows:]
		m.next, qs = qs[:m.rank*m.cols], qs[m.rank*m.cols:]
	}
	return nil
}

// pack fills first.
func (h *powerSGD) pack() {
	to := h.first
	for _, grad := range h.whole {
		to = to[copy(to, grad):]
	}
	for _, m := range h.matrices {
		m.project()
	}
}

// unpack distributes the averages of first, and fills second.
func (h *powerSGD) unpack() {
	from := h.first
	for _, grad := range h.whole {
		from = from[copy(grad, from):]
	}
	for _, m := range h.matrices {
		m.projectBack()
	}
}

var errNotFinite = errors.New("averages are not finite")

// average averages x. Then x is equal on all ranks, so all of them detect that x is not finite, or
// none.
func (h *powerSGD) average(ctx context.Context, c *comm.Comm, x []float32) error {
	if len(x) == 0 {
		return nil
	}
	if err := comm.Allreduce(ctx, c, x, x, comm.Avg); err != nil {
		return err
	}
	if !allFinite(x) {
		return errNotFinite
	}
	return nil
}

// dimensions returns the rows and columns of a parameter as a matrix, zeros if it is none.
func dimensions(shape []int) (rows, cols int) {
	if len(shape) < 2 {
		return 0, 0
	}
	cols = 1
	for _, d := range shape[1:] {
		cols *= d
	}
	return shape[0], cols
}
