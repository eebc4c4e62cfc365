// Package coll holds the collective algorithms over messages, written over Peers. Package path
// chooses among them. An algorithm is a short blocking function. Its comment states the number of
// steps, the bytes that each rank sends, the requirements and the source; a test counts the
// messages and bytes and compares.
package coll

import (
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Peers is an algorithm's view of a communicator during a call. Messages between two ranks arrive
// in the order of their start, so algorithms need no tags. Isend, Irecv and IrecvReduce only
// start an operation; its buffers belong to Peers until Wait. A message to oneself is not
// allowed: copy. Zero-length messages are sent like others.
//
// Algorithms post receives before sends. Otherwise the receiver's Ready for a long message would
// queue behind data that its rank sends to the same peer, and the two messages would travel one
// after the other (two hosts, 1 Gbit/s, allreduce of 8 MiB: 134 ms instead of 70).
type Peers interface {
	Rank() int
	Size() int

	// Isend starts sending b to rank to.
	Isend(to int, b mem.Buffer)

	// Irecv starts receiving b.Len() elements from rank from into b. In device memory, b may be a
	// buffer that is being sent to that rank: nothing is stored before the sent data has left.
	Irecv(from int, b mem.Buffer)

	// IrecvReduce starts receiving own.Len() elements from rank from, combining chunk by chunk as
	// they arrive, so that reduction overlaps transfer: dst = own op in, or in op own if left (the
	// peer's operand on the left). dst may be own, else they do not overlap. Both are host memory.
	IrecvReduce(from int, dst, own mem.Buffer, op call.Op, left bool)

	// Wait waits for all started since the last Wait. After an error later operations of the call
	// do nothing and Wait returns that error: algorithms need not look after each step.
	Wait() error

	// Scratch returns host memory for n elements like those of b, valid
	// until the algorithm returns. Its content is arbitrary.
	Scratch(like mem.Buffer, n int) mem.Buffer
}

// Run does o by messages of p, with an algorithm of the collective.
func Run(p Peers, alg path.Algorithm, o *call.Call) error {
	root := o.Root
	switch o.Kind.As() {
	case calls.Barrier:
		return Barrier(p, alg)
	case calls.Bcast:
		return Bcast(p, alg, root, o.Recv)
	case calls.Reduce:
		return Reduce(p, alg, root, o.Send, o.Recv, o.Op)
	case calls.Allreduce:
		return Allreduce(p, alg, o.Send, o.Recv, o.Op)
	case calls.ReduceScatter:
		return ReduceScatter(p, alg, o.Send, o.Recv, o.SendCounts, o.Op)
	case calls.ReduceScatterBlock:
		return ReduceScatterBlock(p, alg, o.Send, o.Recv, o.Op)
	case calls.Allgather:
		return Allgather(p, alg, o.Send, o.Recv)
	case calls.Allgatherv:
		return Allgatherv(p, alg, o.Send, o.Recv, o.RecvCounts, o.RecvDispls)
	case calls.Gather:
		return Gather(p, alg, root, o.Send, o.Recv)
	case calls.Gatherv:
		return Gatherv(p, root, o.Send, o.Recv, o.RecvCounts, o.RecvDispls)
	case calls.Scatter:
		return Scatter(p, alg, root, o.Send, o.Recv)
	case calls.Scatterv:
		return Scatterv(p, root, o.Send, o.Recv, o.SendCounts, o.SendDispls)
	case calls.Alltoall:
		return Alltoall(p, alg, o.Send, o.Recv)
	case calls.Alltoallv:
		return Alltoallv(p, o.Send, o.SendCounts, o.SendDispls, o.Recv, o.RecvCounts, o.RecvDispls)
	case calls.Alltoallw:
		return Alltoallw(p, o.Each.Send, o.Each.Recv)
	case calls.Scan:
		return Scan(p, alg, o.Send, o.Recv, o.Op)
	case calls.Exscan:
		return Exscan(p, alg, o.Send, o.Recv, o.Op)
	}
	return fmt.Errorf("no algorithm over messages for %v", o.Kind)
}
