package coll

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// send takes note of a message and returns the step in which it arrives.
func (r *rank) send(size int) int {
	r.messages++
	r.bytes += int64(size)
	return r.step + 1
}

// phantom is memory that has a size and no content, so that large calls of many
// ranks can be counted.
type phantom struct{ next uintptr }

func (s *phantom) Name() string { return "phantom" }

func (s *phantom) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	s.next += 1 << 40
	return mem.Device(s, s.next, t, n), nil
}

func (s *phantom) Free(mem.Buffer) {}

func (s *phantom) Copy(mem.Buffer, mem.Buffer) error { return nil }

// perform makes one call of k in phantom memory.
func (r *rank) perform(alg path.Algorithm, k calls.Kind, l load, op call.Op) error {
	s := &phantom{}
	op.Func = func(mem.Buffer, mem.Buffer) {}
	buf := func(n int) mem.Buffer {
		b, _ := s.Alloc(mem.U8, n)
		return b
	}
	p := l.ranks
	n := l.elems * l.size
	switch k {
	case calls.Barrier:
		return Barrier(r, alg)
	case calls.Bcast:
		return Bcast(r, alg, l.root, buf(n))
	case calls.Reduce:
		return Reduce(r, alg, l.root, buf(n), buf(n), op)
	case calls.Allreduce:
		return Allreduce(r, alg, buf(n), buf(n), op)
	case calls.ReduceScatter:
		return ReduceScatterBlock(r, alg, buf(n*p), buf(n), op)
	case calls.Allgather:
		return Allgather(r, alg, buf(n), buf(n*p))
	case calls.Gather:
		return Gather(r, alg, l.root, buf(n), buf(n*p))
	case calls.Scatter:
		return Scatter(r, alg, l.root, buf(n*p), buf(n))
	case calls.Alltoall:
		return Alltoall(r, alg, buf(n*p), buf(n*p))
	default:
		return Scan(r, alg, buf(n), buf(n), op)
	}
}
