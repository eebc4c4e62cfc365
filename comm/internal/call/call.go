// Package call describes one call of a collective: its arguments, their check, and which blocks go
// from which rank to which. All that distinguishes one collective from another is in one table of
// traits (traits.go), which other packages ask. Only packages with an algorithm for one collective
// have a function for it.
//
// To add a collective, write: its number and name in package internal/seg, and whether it has a
// root; a row in the table of traits; a method of Call that fills one in; an algorithm over
// messages, in Run of package coll; a case in choose.go of package path, if its choices differ from
// those of others; and the public methods in comm. Shared memory and devices do what its row says
// (see Transfer). Package hier needs a function if the collective is to be hierarchical.
package call

import "gompi/internal/mem"

// A Call is one call of a collective on one rank. It is a value: a blocking call keeps it on its
// stack, a Persistent in itself. The methods named after collectives fill in a zero Call where it
// lies and return a pointer to it: to copy so large a struct right after its fields were stored
// stalls the processor (10 ns of an allreduce).
type Call struct {
	Fingerprint
	Send, Recv             mem.Buffer
	Root                   int   // as the caller gave it: Fingerprint's is cut to 32 bits
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

// is sets what c does with count elements like b's.
func (c *Call) is(k Kind, b mem.Buffer, count int) *Call {
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
func (c *Call) Barrier() *Call { return c.is(Barrier, mem.Buffer{}, 0) }

func (c *Call) Bcast(root int, b mem.Buffer) *Call {
	return c.is(Bcast, b, b.Len()).at(root).to(b)
}

func (c *Call) Reduce(root int, send, recv mem.Buffer, op Op) *Call {
	return c.is(Reduce, send, send.Len()).at(root).by(op).from(send).to(recv)
}

func (c *Call) Allreduce(send, recv mem.Buffer, op Op) *Call {
	return c.is(Allreduce, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) ReduceScatter(send, recv mem.Buffer, counts []int, op Op) *Call {
	c.SendCounts, c.Digest = counts, DigestOf(counts)
	return c.is(ReduceScatter, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) ReduceScatterBlock(send, recv mem.Buffer, op Op) *Call {
	return c.is(ReduceScatterBlock, send, recv.Len()).by(op).from(send).to(recv)
}

func (c *Call) Allgather(send, recv mem.Buffer) *Call {
	return c.is(Allgather, send, send.Len()).from(send).to(recv)
}

func (c *Call) Allgatherv(send, recv mem.Buffer, counts, displs []int) *Call {
	c.RecvCounts, c.RecvDispls, c.Digest = counts, ofBlocks(recv, counts, displs), DigestOf(counts)
	return c.is(Allgatherv, send, total(counts)).from(send).to(recv)
}

func (c *Call) Gather(root int, send, recv mem.Buffer) *Call {
	return c.is(Gather, send, send.Len()).at(root).from(send).to(recv)
}

func (c *Call) Gatherv(root int, send, recv mem.Buffer, counts, displs []int) *Call {
	c.RecvCounts, c.RecvDispls = counts, ofBlocks(recv, counts, displs)
	return c.is(Gatherv, send, 0).at(root).from(send).to(recv)
}

func (c *Call) Scatter(root int, send, recv mem.Buffer) *Call {
	return c.is(Scatter, recv, recv.Len()).at(root).from(send).to(recv)
}

func (c *Call) Scatterv(root int, send, recv mem.Buffer, counts, displs []int) *Call {
	c.SendCounts, c.SendDispls = counts, ofBlocks(send, counts, displs)
	return c.is(Scatterv, recv, 0).at(root).from(send).to(recv)
}

func (c *Call) Alltoall(send, recv mem.Buffer) *Call {
	return c.is(Alltoall, send, send.Len()).from(send).to(recv)
}

func (c *Call) Alltoallv(send mem.Buffer, sendCounts, sendDispls []int, recv mem.Buffer, counts, displs []int) *Call {
	c.SendCounts, c.SendDispls = sendCounts, ofBlocks(send, sendCounts, sendDispls)
	c.RecvCounts, c.RecvDispls = counts, ofBlocks(recv, counts, displs)
	return c.is(Alltoallv, send, 0).from(send).to(recv)
}

func (c *Call) Alltoallw(send, recv []mem.Buffer) *Call {
	sent, sendHost := measure(send)
	received, recvHost := measure(recv)
	c.Each = Each{send, recv, max(sent, received), sendHost && recvHost}
	return c.is(Alltoallw, mem.Buffer{}, 0)
}

func (c *Call) Scan(send, recv mem.Buffer, op Op) *Call {
	return c.is(Scan, send, send.Len()).by(op).from(send).to(recv)
}

func (c *Call) Exscan(send, recv mem.Buffer, op Op) *Call {
	return c.is(Exscan, send, send.Len()).by(op).from(send).to(recv)
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
	if c.Kind == Alltoallw {
		return c.Each.isHost
	}
	return c.Send.IsHost() && c.Recv.IsHost()
}

// Bytes returns the size of the longer of c's buffers on this rank.
func (c *Call) Bytes() int {
	if c.Kind == Alltoallw {
		return c.Each.bytes
	}
	return max(c.Send.Size(), c.Recv.Size())
}

// measure returns the size of all and whether they are in host memory.
func measure(all []mem.Buffer) (size int, isHost bool) {
	isHost = true
	for _, b := range all {
		size += b.Size()
		isHost = isHost && b.IsHost()
	}
	return size, isHost
}
