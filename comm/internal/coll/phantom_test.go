package coll

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
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
func (r *rank) perform(alg path.Algorithm, k call.Kind, l load, op call.Op) error {
	s := &phantom{}
	op.Func = func(mem.Buffer, mem.Buffer) {}
	buf := func(n int) mem.Buffer {
		b, _ := s.Alloc(mem.U8, n)
		return b
	}
	p := l.ranks
	n := l.elems * l.size
	switch k {
	case call.Barrier:
		return Barrier(r, alg)
	case call.Bcast:
		return Bcast(r, alg, l.root, buf(n))
	case call.Reduce:
		return Reduce(r, alg, l.root, buf(n), buf(n), op)
	case call.Allreduce:
		return Allreduce(r, alg, buf(n), buf(n), op)
	case call.ReduceScatter:
		return ReduceScatterBlock(r, alg, buf(n*p), buf(n), op)
	case call.Allgather:
		return Allgather(r, alg, buf(n), buf(n*p))
	case call.Gather:
		return Gather(r, alg, l.root, buf(n), buf(n*p))
	case call.Scatter:
		return Scatter(r, alg, l.root, buf(n*p), buf(n))
	case call.Alltoall:
		return Alltoall(r, alg, buf(n*p), buf(n*p))
	default:
		return Scan(r, alg, buf(n), buf(n), op)
	}
}
