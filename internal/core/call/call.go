// Package call describes a call of a collective: its arguments, their check, and which blocks go
// from which rank to which. Package calls has the table of the differences between collectives.
package call

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
)

// A Call is a call of a collective on one rank. Calls are values: a blocking call keeps its Call
// on the stack, a Persistent in itself. The methods named after collectives fill in a zero Call
// in place and return a pointer: a copy of so large a struct right after its fields were stored
// stalls the processor (10 ns of an allreduce).
type Call struct {
	Fingerprint
	Send, Recv             mem.Buffer
	Root                   int   // as the caller gave it: Fingerprint has only 32 bits of it
	Op                     Op    // Fingerprint's with its function
	SendCounts, SendDispls []int // of Send's blocks, where the collective has counts for them
	RecvCounts, RecvDispls []int // of Recv's
	Each                   Each  // of an alltoallw, in the place of Send and Recv
}

// Each is a vector for each rank: Send[i] goes to rank i, Recv[i] comes from there.
type Each struct {
	Send, Recv []mem.Buffer
	bytes      int  // of all that is sent, or received if that is more
	isHost     bool // all are in host memory
}

// is sets c's Kind and Count, and c's Type to b's.
func (c *Call) is(k calls.Kind, b mem.Buffer, count int) *Call {
	c.Kind, c.Type, c.Count = k, b.Type(), int64(count)
	return c
}

func (c *Call) from(send mem.Buffer) *Call {
	c.Send = send
	return c
}

func (c *Call) to(recv mem.Buffer) *Call {
	c.Recv = recv
	return c
}

func (c *Call) at(root int) *Call {
	c.Root, c.Fingerprint.Root = root, int32(root)
	return c
}

func (c *Call) by(op Op) *Call {
	c.Op, c.Fingerprint.Op = op, op.Kind
	return c
}

// Barrier fills in c, as the following.
func (c *Call) Barrier() *Call { return c.is(calls.Barrier, mem.Buffer{}, 0) }

func (c *Call) Bcast(root int, b mem.Buffer) *Call {
	return c.is(calls.Bcast, b, b.Len()).at(root).to(b)
}

func (c *Call) Reduce(root int, send, recv mem.Buffer, op Op) *Call {
	return c.is(calls.Reduce, send, send.Len()).at(root).by(op).from(send).to(recv)
}

func (c *Call) Allreduce(send, recv mem.Buffer, op Op) *Call {
	return c.is(calls.Allreduce, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) ReduceScatter(send, recv mem.Buffer, counts []int, op Op) *Call {
	c.SendCounts, c.Digest = counts, DigestOf(counts)
	return c.is(calls.ReduceScatter, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) ReduceScatterBlock(send, recv mem.Buffer, op Op) *Call {
	return c.is(calls.ReduceScatterBlock, send, recv.Len()).by(op).from(send).to(recv)
}

func (c *Call) Allgather(send, recv mem.Buffer) *Call {
	return c.is(calls.Allgather, send, send.Len()).from(send).to(recv)
}

func (c *Call) Allgatherv(send, recv mem.Buffer, counts, displs []int) *Call {
	c.RecvCounts, c.RecvDispls, c.Digest = counts, ofBlocks(recv, counts, displs), DigestOf(counts)
	return c.is(calls.Allgatherv, send, total(counts)).from(send).to(recv)
}

func (c *Call) Gather(root int, send, recv mem.Buffer) *Call {
	return c.is(calls.Gather, send, send.Len()).at(root).from(send).to(recv)
}

func (c *Call) Gatherv(root int, send, recv mem.Buffer, counts, displs []int) *Call {
	c.RecvCounts, c.RecvDispls = counts, ofBlocks(recv, counts, displs)
	return c.is(calls.Gatherv, send, 0).at(root).from(send).to(recv)
}

func (c *Call) Scatter(root int, send, recv mem.Buffer) *Call {
	return c.is(calls.Scatter, recv, recv.Len()).at(root).from(send).to(recv)
}

func (c *Call) Scatterv(root int, send, recv mem.Buffer, counts, displs []int) *Call {
	c.SendCounts, c.SendDispls = counts, ofBlocks(send, counts, displs)
	return c.is(calls.Scatterv, recv, 0).at(root).from(send).to(recv)
}

func (c *Call) Alltoall(send, recv mem.Buffer) *Call {
	return c.is(calls.Alltoall, send, send.Len()).from(send).to(recv)
}

func (c *Call) Alltoallv(send mem.Buffer, sendCounts, sendDispls []int, recv mem.Buffer, counts, displs []int) *Call {
	c.SendCounts, c.SendDispls = sendCounts, ofBlocks(send, sendCounts, sendDispls)
	c.RecvCounts, c.RecvDispls = counts, ofBlocks(recv, counts, displs)
	return c.is(calls.Alltoallv, send, 0).from(send).to(recv)
}

func (c *Call) Alltoallw(send, recv []mem.Buffer) *Call {
	sent, sendHost := measure(send)
	received, recvHost := measure(recv)
	c.Each = Each{send, recv, max(sent, received), sendHost && recvHost}
	return c.is(calls.Alltoallw, mem.Buffer{}, 0)
}

func (c *Call) Scan(send, recv mem.Buffer, op Op) *Call {
	return c.is(calls.Scan, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) Exscan(send, recv mem.Buffer, op Op) *Call {
	return c.is(calls.Exscan, send, send.Len()).by(op).from(send).to(recv)
}

// Arguments are the arguments of any collective.
type Arguments struct {
	Send, Recv             mem.Buffer
	Root                   int
	Op                     Op
	SendCounts, SendDispls []int
	RecvCounts, RecvDispls []int
	Each                   Each
}

// Fill fills in a zero c with the arguments of a that collective k has.
func (c *Call) Fill(k calls.Kind, a *Arguments) *Call {
	switch k {
	case calls.Barrier:
		c.Barrier()
	case calls.Bcast:
		c.Bcast(a.Root, a.Recv)
	case calls.Reduce:
		c.Reduce(a.Root, a.Send, a.Recv, a.Op)
	case calls.Allreduce:
		c.Allreduce(a.Send, a.Recv, a.Op)
	case calls.ReduceScatter:
		c.ReduceScatter(a.Send, a.Recv, a.SendCounts, a.Op)
	case calls.ReduceScatterBlock:
		c.ReduceScatterBlock(a.Send, a.Recv, a.Op)
	case calls.Allgather:
		c.Allgather(a.Send, a.Recv)
	case calls.Allgatherv:
		c.Allgatherv(a.Send, a.Recv, a.RecvCounts, a.RecvDispls)
	case calls.Gather:
		c.Gather(a.Root, a.Send, a.Recv)
	case calls.Gatherv:
		c.Gatherv(a.Root, a.Send, a.Recv, a.RecvCounts, a.RecvDispls)
	case calls.Scatter:
		c.Scatter(a.Root, a.Send, a.Recv)
	case calls.Scatterv:
		c.Scatterv(a.Root, a.Send, a.Recv, a.SendCounts, a.SendDispls)
	case calls.Alltoall:
		c.Alltoall(a.Send, a.Recv)
	case calls.Alltoallv:
		c.Alltoallv(a.Send, a.SendCounts, a.SendDispls, a.Recv, a.RecvCounts, a.RecvDispls)
	case calls.Alltoallw:
		c.Alltoallw(a.Each.Send, a.Each.Recv)
	case calls.Scan:
		c.Scan(a.Send, a.Recv, a.Op)
	case calls.Exscan:
		c.Exscan(a.Send, a.Recv, a.Op)
	default:
		panic("call: " + k.String() + " has no arguments")
	}
	return c
}

// ElemSize returns the bytes of an element.
func (c *Call) ElemSize() int {
	if c.Type == mem.Opaque {
		return max(c.Send.ElemSize(), c.Recv.ElemSize())
	}
	return c.Type.Size()
}

// IsHost reports whether c's buffers are in host memory.
func (c *Call) IsHost() bool {
	if c.Kind == calls.Alltoallw {
		return c.Each.isHost
	}
	return c.Send.IsHost() && c.Recv.IsHost()
}

// Bytes returns the size of the longer of c's buffers on this rank.
func (c *Call) Bytes() int {
	if c.Kind == calls.Alltoallw {
		return c.Each.bytes
	}
	return max(c.Send.Size(), c.Recv.Size())
}

// measure returns the size of all the buffers, and whether they are in host memory.
func measure(all []mem.Buffer) (size int, isHost bool) {
	isHost = true
	for _, b := range all {
		size += b.Size()
		isHost = isHost && b.IsHost()
	}
	return size, isHost
}
