package comm

import (
	"context"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/comm/internal/staging"
	"gompi/internal/mem"
)

// Collectives and messages in the order of a stream. They are called like the
// nonblocking ones, whose order among the ranks' calls they keep, and return at once;
// the operation begins when the work that q has at that time is done, and what is put
// on q later begins when it has ended: q stops for the host, which does the operation, or
// has NCCL do it. So a program can put all of a step on its streams without ever waiting.
// Buffers need not be of q's device. The most used have a method; StartOn of a Persistent
// is that of every other.
//
// A collective that fails lets q go on too, with buffers that hold anything: the
// Request tells. Until it is done nobody in the process must free memory of the
// device, close a Comm that uses it, or wait for all of its work, since drivers may
// keep from working whoever else needs them to end the collective. The same goes for
// kernels that are launched for the first time, if the driver loads them only then
// (CUDA_MODULE_LOADING=LAZY, its default), and for work that finds q full: a CUDA
// stream takes some 1000. The first long collective of a Comm takes memory of its
// device, as the first messages and staged collectives take pinned memory: if they are
// none of these, no stream stops meanwhile. Whether a driver minds has
// not been seen: this never ran on a GPU.

// AllreduceOnStream is Allreduce in the order of q.
func (c *Comm) AllreduceOnStream(q Queue, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).Allreduce(send, recv, builtin(op)), q)
}

// BcastOnStream is Bcast in the order of q.
func (c *Comm) BcastOnStream(q Queue, root int, b Buffer) Request {
	return c.collectiveBehind(new(call.Call).Bcast(root, b), q)
}

// ReduceOnStream is Reduce in the order of q.
func (c *Comm) ReduceOnStream(q Queue, root int, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).Reduce(root, send, recv, builtin(op)), q)
}

// ReduceScatterOnStream is ReduceScatterBlock in the order of q.
func (c *Comm) ReduceScatterOnStream(q Queue, send, recv Buffer, op Op) Request {
	return c.collectiveBehind(new(call.Call).ReduceScatterBlock(send, recv, builtin(op)), q)
}

// AllgatherOnStream is Allgather in the order of q.
func (c *Comm) AllgatherOnStream(q Queue, send, recv Buffer) Request {
	return c.collectiveBehind(new(call.Call).Allgather(send, recv), q)
}

// AlltoallOnStream is Alltoall in the order of q.
func (c *Comm) AlltoallOnStream(q Queue, send, recv Buffer) Request {
	return c.collectiveBehind(new(call.Call).Alltoall(send, recv), q)
}

// SendOnStream is Send in the order of q, which goes on as soon as b may be changed
// again: it does not wait for the receiver, as the Request does. The message has its
// place in the order of this call, whenever q comes to it.
func (c *Comm) SendOnStream(q Queue, to, tag int, b Buffer) Request {
	return c.messageBehind(q, sendRequest, to, tag, b)
}

// RecvOnStream is Recv in the order of q. The message is matched in the order of this
// call, and may come before q does: it waits beside b.
func (c *Comm) RecvOnStream(q Queue, from, tag int, b Buffer) Request {
	return c.messageBehind(q, recvRequest, from, tag, b)
}

// messageBehind starts a message of a stage, so that it keeps its place in the order. A
// goroutine copies to or from that when q has come to it. An error is kept for Wait.
func (c *Comm) messageBehind(q Queue, k requestKind, peer, tag int, b Buffer) Request {
	r := Request{c: c, kind: k, peer: int32(peer)}
	if err := c.checkMessage(k, peer, tag); err != nil {
		r.peer, r.h = -1, c.failed(err)
		return r
	}
	s, err := c.staging.Stage(b)
	if err != nil {
		r.h = c.failed(err)
		return r
	}
	hold, err := q.Hold()
	switch {
	case err != nil:
		c.staging.End(s)
		r.h = c.failed(err)
	case k == recvRequest:
		m := c.ch.Irecv(peer, tag, s.Host)
		r.h = c.e.Expect(m)
		go c.recvBehind(hold, r.h, m, s) // ends with the message, or with the communicator
	default:
		m := c.ch.IsendLater(peer, tag, s.Host)
		r.h = c.e.Expect(m)
		go c.sendBehind(hold, r.h, m, s) // so does this
	}
	return r
}

func (c *Comm) sendBehind(hold mem.Hold, h, m engine.Handle, s staging.Stage) {
	err := hold.Reached()
	if err == nil {
		err = mem.Copy(s.Host, s.Of)
	}
	hold.Release()
	if err == nil {
		c.ch.Supply(m)
	} else { // the receiver waits in vain
		c.ch.Break("failed before isend: " + err.Error())
	}
	_, _, sent := c.e.Wait(context.Background(), m)
	c.staging.End(s)
	if err == nil {
		err = sent
	}
	c.e.Complete(h, engine.Status{}, err)
}

func (c *Comm) recvBehind(hold mem.Hold, h, m engine.Handle, s staging.Stage) {
	st, _, err := c.e.Wait(context.Background(), m)
	if reached := hold.Reached(); err == nil {
		err = reached
	}
	err = c.received(s, st, err)
	hold.Release()
	c.e.Complete(h, st, err)
}

// stop stops q, if that is not nil, behind the work that it has.
func stop(q Queue) (at streamPosition) {
	if q != nil {
		at.hold, at.err = q.Hold()
	}
	return at
}

// perform runs the collective whose turn it is, between the works of its stream.
func (t *turn) perform(c *Comm) error {
	defer c.unwind(&t.o)
	err := t.at.reached()
	if err == nil {
		err = c.perform(context.Background(), &t.o, true)
	} else { // it is this rank's alone: the others wait in vain
		c.ch.Break("failed before " + t.o.String() + ": " + err.Error())
	}
	if t.at.hold != nil {
		t.at.hold.Release()
	}
	return err
}

// reached waits until the work before it is done.
func (at streamPosition) reached() error {
	if at.err != nil || at.hold == nil {
		return at.err
	}
	return at.hold.Reached()
}
